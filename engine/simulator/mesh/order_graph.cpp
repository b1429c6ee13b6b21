#include "simulator/order_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/index.h"

namespace trinity {
namespace {

std::vector<int32_t> numbers(size_t count) {
  std::vector<int32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int32_t> collectives_of(const Graph& graph) {
  std::vector<int32_t> all;
  for (const auto& op : graph.operators()) all.push_back(op.collective);
  return all;
}

}  // namespace

OrderGraph::OrderGraph(const Problem& problem)
    : OrderGraph(problem, numbers(at(problem.operators())),
                 numbers(problem.graph().collectives().size()), collectives_of(problem.graph()),
                 [&graph = problem.graph()](int32_t op, auto add) {
                   for (const int32_t tensor : graph.op(op).inputs) {
                     const int32_t from = graph.tensor(tensor).producer;
                     add(Source{from, tensor - graph.op(from).outputs.front()});
                   }
                 }) {
  longest_step_ns_ = problem.longest_step_ns();
}

void OrderGraph::finish() {
  const size_t count = like_.size();
  output_first_.assign(count + 1, 0);
  once_.resize(count);
  member_first_.assign(collective_like_.size() + 1, 0);
  auto joined = joined_.outputs.cbegin();
  for (int32_t op = 0; op < operators(); ++op) {
    const int32_t of = like_[op];
    once_[op] = problem_->once(of) ? kOnce : 0;
    int32_t outputs = problem_->first_output(of + 1) - problem_->first_output(of);
    if (joined != joined_.outputs.end() && joined->first == op) {
      once_[op] |= kJoins;
      outputs = static_cast<int32_t>((joined++)->second.size());
    }
    output_first_[op + 1] = output_first_[op] + outputs;
    if (collective_[op] >= 0) ++member_first_[at(collective_[op]) + 1];
  }
  std::partial_sum(member_first_.begin(), member_first_.end(), member_first_.begin());
  members_.resize(at(member_first_.back()));
  auto next = member_first_;
  for (int32_t op = 0; op < operators(); ++op)
    if (collective_[op] >= 0) members_[next[collective_[op]]++] = op;
  find_readers();
  // Each operator copies one of the problem, which occurs in the problem's longest step.
  longest_step_ns_ = problem_->longest_step_ns() * static_cast<double>(count);
}

/// Sorts readers ascending, those of one operator by output: one entry per output and reader.
void OrderGraph::find_readers() {
  const size_t count = like_.size();
  reader_first_.assign(count + 1, 0);
  missing_.assign(count, 0);
  std::vector<int32_t> read_by(at(output_first_.back()), -1);  // [output]: its latest reader
  const auto for_each_once = [&](int32_t op, auto visit) {     // its distinct inputs
    for (const Source& source : inputs(op)) {
      auto& reader = read_by[at(output_first_[source.op] + source.output)];
      if (std::exchange(reader, op) != op) visit(source);
    }
  };
  for (int32_t op = 0; op < operators(); ++op)
    for_each_once(op, [&](const Source& source) {
      ++reader_first_[at(source.op) + 1];
      ++missing_[op];
    });
  std::partial_sum(reader_first_.begin(), reader_first_.end(), reader_first_.begin());
  readers_.resize(at(reader_first_.back()));
  auto next = reader_first_;
  std::fill(read_by.begin(), read_by.end(), -1);
  for (int32_t op = 0; op < operators(); ++op)
    for_each_once(op, [&](const Source& source) {
      const int32_t from = source.op;
      int32_t place = next[from]++;
      for (; place > reader_first_[from] && readers_[place - 1].op == op &&
             readers_[place - 1].output > source.output;
           --place)
        readers_[place] = readers_[place - 1];
      readers_[place] = {op, source.output};
    });
}

}  // namespace trinity
