#include "execute/sent_weights.h"

#include <charconv>
#include <map>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

constexpr std::string_view kSent = "#sent";

std::string prefix_of(const Operator& op, size_t output) {
  return fmt::format("{}{}{}@", op.name, kSent, output);
}

/// Broadcasts the entries that `rank` has sent through a slot.
std::vector<SentWeights::Sent> shared(const std::deque<SentWeights::Sent>& own, int32_t rank,
                                      at::ScalarType real, Job& job) {
  const auto broadcast = [&](const at::Tensor& tensor) {
    job.wait(*job.begin_broadcast(tensor, Scope::world, rank));
  };
  const bool is_own = job.rank() == rank;
  at::Tensor count = at::zeros({2}, at::kDouble);  // entries, elements of each
  auto* of = count.data_ptr<double>();
  if (is_own && !own.empty()) {
    of[0] = static_cast<double>(own.size());
    of[1] = static_cast<double>(own.front().tensor.numel());
  }
  broadcast(count);
  at::Tensor steps = at::zeros({static_cast<int64_t>(of[0])}, at::kDouble);
  for (size_t i = 0; is_own && i < own.size(); ++i)
    steps.data_ptr<double>()[i] = static_cast<double>(own[i].step);
  if (steps.numel() > 0) broadcast(steps);
  std::vector<SentWeights::Sent> all;
  for (int64_t i = 0; i < steps.numel(); ++i) {
    const at::Tensor values = is_own ? own[at(i)].tensor.to(at::kCPU, real).contiguous()
                                     : at::empty({static_cast<int64_t>(of[1])}, real);
    broadcast(values);
    all.push_back({static_cast<int64_t>(steps.data_ptr<double>()[i]), values, {}});
  }
  return all;
}

}  // namespace

void name_sent(const SentWeights& sent, const Program& program, const RunLayout& layout,
               at::ScalarType real, Job* job, std::vector<NamedTensor>& into) {
  const auto& graph = program.graph();
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (program.duty(op) != Duty::send) continue;
    for (size_t k = 0; k < graph.op(op).outputs.size(); ++k) {
      const auto& own = sent.entries(layout.home_slot(graph.op(op).outputs[k]));
      const auto entries = job ? shared(own, layout.device_of(op), real, *job)
                               : std::vector<SentWeights::Sent>(own.begin(), own.end());
      for (const auto& entry : entries)
        into.push_back({prefix_of(graph.op(op), k) + std::to_string(entry.step),
                        entry.tensor.to(real)});
    }
  }
}

void set_sent(const std::vector<NamedTensor>& values, SentWeights& sent, const Program& program,
              const RunLayout& layout, const Job* job) {
  std::map<std::string, int32_t> tensors;  // by prefix of a name
  const auto& graph = program.graph();
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    for (size_t k = 0; program.duty(op) == Duty::send && k < graph.op(op).outputs.size(); ++k)
      tensors[prefix_of(graph.op(op), k)] = graph.op(op).outputs[k];
  std::map<std::pair<int32_t, int64_t>, at::Tensor> found_at;  // by tensor and step
  for (const auto& [name, tensor] : values) {
    if (name.find(kSent) == std::string::npos) continue;
    const size_t end = name.rfind('@') + 1;
    const auto found = tensors.find(name.substr(0, end));
    int64_t step = -1;
    std::from_chars(name.data() + end, name.data() + name.size(), step);
    if (found == tensors.end() || step < 0)
      throw ArgumentError("weights: the checkpoint has an unmerged send '{}' of another strategy; resume with the "
                          "strategy that wrote it", name);
    found_at[{found->second, step}] = tensor;
  }
  for (const auto& [place, tensor] : found_at) {
    const int32_t home = layout.home_slot(place.first);
    for (int32_t slot = home; slot < layout.end_slot(place.first); ++slot) {
      const bool is_here = job ? layout.slots()[slot].device == job->rank() : slot == home;
      if (is_here) sent.keep(slot, place.second, tensor);
    }
  }
}

}  // namespace trinity
