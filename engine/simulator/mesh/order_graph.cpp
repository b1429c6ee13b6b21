#include "simulator/order_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/index.h"

namespace trinity {

OrderGraph::OrderGraph(const Problem& problem) : problem_(&problem) {
  const auto& graph = problem.graph();
  input_first_.reserve(at(operators()) + 1);
  input_first_.push_back(0);
  member_first_.assign(graph.collectives().size() + 1, 0);
  for (const auto& op : graph.operators()) {
    for (const int32_t tensor : op.inputs) {
      const int32_t from = graph.tensor(tensor).producer;
      inputs_.push_back({from, tensor - graph.op(from).outputs.front()});
    }
    input_first_.push_back(static_cast<int32_t>(inputs_.size()));
    if (op.collective >= 0) ++member_first_[at(op.collective) + 1];
  }
  std::partial_sum(member_first_.begin(), member_first_.end(), member_first_.begin());
  members_.resize(at(member_first_.back()));
  auto next = member_first_;
  for (int32_t op = 0; op < operators(); ++op)
    if (collective(op) >= 0) members_[next[collective(op)]++] = op;
  find_readers();
}

/// Readers ascend, one operator's readers by output: one entry for each output and reader.
void OrderGraph::find_readers() {
  const size_t count = at(operators());
  reader_first_.assign(count + 1, 0);
  missing_.assign(count, 0);
  std::vector<int32_t> read_by(at(problem_->first_output(operators())), -1);  // per output: the latest reader
  const auto for_each_once = [&](int32_t op, auto visit) {     // what it reads
    for (const Source& source : inputs(op)) {
      auto& reader = read_by[at(problem_->first_output(source.op) + source.output)];
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
