#include "simulator/account.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/index.h"
#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "graph/split_backward.h"

namespace trinity {
namespace {

class Accounting {
 public:
  Accounting(const Problem& problem, std::span<const int32_t> placement, const Timeline& timeline,
             std::span<const int32_t> group, int32_t groups)
      : problem_(problem),
        graph_(problem.graph()),
        placement_(placement),
        timeline_(timeline),
        group_(group),
        changes_(at(problem.devices())),
        input_part_(input_parts(graph_)) {
    result_.devices.resize(at(problem.devices()));
    for (auto& device : result_.devices) device.activation_bytes.assign(at(groups), 0);
  }

  Account run() {
    for (int32_t op = 0; op < graph_.operator_count(); ++op) add_states(op);
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      if (keeps(op)) add_activations(op);
      if (graph_.op(op).phase == Phase::backward) add_delayed_gradients(op);
    }
    for (size_t d = 0; d < changes_.size(); ++d) find_peak(d);
    add_traffic();
    add_times();
    return std::move(result_);
  }

 private:
  int32_t task(int32_t op, int32_t micro) const { return micro * problem_.operators() + op; }

  void add_states(int32_t op) {
    const auto& about = graph_.op(op);
    auto& device = result_.devices[placement_[op]];
    device.parameters += about.parameter_count();
    device.weight_bytes += about.parameter_bytes();
    device.optimizer_bytes += about.persistent_bytes;
    for (int32_t micro = 0; micro < timeline_.micro_batches; ++micro)
      if (timeline_.start_ns[task(op, micro)] >= 0) device.flops += about.flops;
    if (about.type == "WeightGather")
      for (const int32_t output : about.outputs)
        device.gathered_bytes = std::max(device.gathered_bytes, graph_.tensor(output).bytes);
    if (about.phase != Phase::backward) return;
    for (const int32_t output : about.outputs)
      if (std::ranges::any_of(graph_.readers_of(output), [&](int32_t reader) { return runs_last(reader); }))
        device.gradient_bytes += graph_.tensor(output).bytes;
  }
  bool runs_last(int32_t op) const { return graph_.op(op).phase == Phase::update; }

  /// True if an output of the operator is an activation with storage of its own.
  bool keeps(int32_t op) const {
    const auto& about = graph_.op(op);
    const bool source = about.inputs.empty();
    return about.phase == Phase::forward && !source && about.type != "WeightGather" &&
           stored_by(op) < 0;
  }
  /// The operator whose output a view or an in-place operator shares; -1: it has its own storage.
  int32_t stored_by(int32_t op) const {
    if (problem_.alias(op) < 0) return -1;
    const int32_t from = graph_.tensor(graph_.op(op).inputs.front()).producer;
    return placement_[from] == placement_[op] ? from : -1;
  }

  void add_activations(int32_t op) {
    for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o)
      for (int32_t micro = 0; micro < timeline_.micro_batches; ++micro) {
        Waits waits;
        last_reads(op, o, micro, waits);
        for (const auto& [device, wait] : waits) {
          int64_t begin_ns = timeline_.end_ns[task(op, micro)];
          if (device != placement_[op]) begin_ns = first_read(op, o, micro, device, begin_ns);
          const int64_t bytes = problem_.copied_bytes(op, static_cast<int32_t>(o));
          keep(device, begin_ns, wait.end_ns, bytes, group_[wait.reader]);
          keep(device, std::max(begin_ns, wait.end_ns), wait.delayed_ns, bytes, kDelayed);
        }
      }
  }

  void keep(int32_t device, int64_t begin_ns, int64_t end_ns, int64_t bytes, int32_t group) {
    if (end_ns <= begin_ns) return;
    changes_[device].push_back({begin_ns, bytes, group});
    changes_[device].push_back({end_ns, -bytes, group});
  }

  /// Adds gradients that W operators on a device read after the B operators. A view represents the
  /// gradient that it views.
  void add_delayed_gradients(int32_t op) {
    for (const int32_t output : graph_.op(op).outputs)
      for (int32_t micro = 0; micro < timeline_.micro_batches; ++micro) {
        std::map<int32_t, std::pair<int64_t, int64_t>> waits;  // from, until, by device
        for (const int32_t reader : graph_.readers_of(output)) {
          if (!is_weight_part(graph_.op(reader))) continue;
          const int64_t from_ns = timeline_.end_ns[task(input_of(reader), micro)];
          auto& [begin_ns, end_ns] =
              waits.try_emplace(placement_[reader], from_ns, 0).first->second;
          begin_ns = std::min(begin_ns, from_ns);
          end_ns = std::max(end_ns, timeline_.end_ns[task(reader, micro)]);
        }
        for (const auto& [device, wait] : waits)
          keep(device, wait.first, wait.second, graph_.tensor(output).bytes, kDelayed);
      }
  }
  /// The B operator of a W operator; itself if there is none.
  int32_t input_of(int32_t weight) const {
    const int32_t input = input_part_[graph_.op(weight).forward];
    return input < 0 ? weight : input;
  }

  /// The time until which a device needs a tensor: the end of its last reader, and of the last W
  /// operator if all other readers have run.
  struct Wait {
    int64_t end_ns = -1;
    int32_t reader = -1;
    int64_t delayed_ns = -1;
  };
  using Waits = std::map<int32_t, Wait>;
  /// Covers a tensor and its views.
  void last_reads(int32_t op, size_t output, int32_t micro, Waits& waits) const {
    const int32_t tensor = graph_.op(op).outputs[output];
    for (const int32_t reader : graph_.readers_of(tensor)) {
      const auto& about = graph_.op(reader);
      if (about.phase == Phase::forward && stored_by(reader) == op && about.inputs[0] == tensor)
        last_reads(reader, 0, micro, waits);
      if (about.phase != Phase::backward) continue;
      auto& wait = waits[placement_[reader]];
      int32_t until = reader;
      if (is_weight_part(about)) {
        until = input_of(reader);
        wait.delayed_ns = std::max(wait.delayed_ns, timeline_.end_ns[task(reader, micro)]);
      }
      const std::pair reads{timeline_.end_ns[task(until, micro)], until};
      if (reads > std::pair{wait.end_ns, wait.reader})
        std::tie(wait.end_ns, wait.reader) = reads;
    }
  }

  /// End of the first forward operator on another device that reads a tensor; gathers of weights
  /// only wait for it and do not count.
  int64_t first_read(int32_t op, size_t output, int32_t micro, int32_t device,
                     int64_t written_ns) const {
    int64_t first_ns = std::numeric_limits<int64_t>::max();
    for (const int32_t reader : graph_.readers_of(graph_.op(op).outputs[output])) {
      const auto& about = graph_.op(reader);
      if (about.phase == Phase::forward && placement_[reader] == device &&
          about.type != "WeightGather")
        first_ns = std::min(first_ns, timeline_.end_ns[task(reader, micro)]);
    }
    return first_ns == std::numeric_limits<int64_t>::max() ? written_ns : first_ns;
  }

  static constexpr int32_t kDelayed = -1;  ///< group index for delayed bytes
  struct Change {
    int64_t time_ns, bytes;
    int32_t group;
  };

  /// At one instant releases come before allocations.
  void find_peak(size_t device) {
    auto& changes = changes_[device];
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return std::tie(a.time_ns, a.bytes) < std::tie(b.time_ns, b.bytes);
    });
    auto& about = result_.devices[device];
    std::vector<int64_t> now(about.activation_bytes.size(), 0);
    int64_t total = 0, most = 0, delayed = 0;
    for (const auto& change : changes) {
      (change.group == kDelayed ? delayed : now[change.group]) += change.bytes;
      total += change.bytes;
      const bool written = change.bytes > 0 && change.group != kDelayed;
      if (!written || total <= most) continue;
      most = total;
      about.activation_bytes = now;
      about.delayed_bytes = delayed;
    }
  }

  void add_times() {
    int64_t end_ns = 0;
    for (size_t t = 0; t < timeline_.end_ns.size(); ++t) {
      end_ns = std::max(end_ns, timeline_.end_ns[t]);
      const auto number = static_cast<int32_t>(t % placement_.size());
      const auto& op = graph_.op(number);
      if (op.collective >= 0) continue;
      auto& device = result_.devices[placement_[number]];
      const int64_t time_ns = timeline_.end_ns[t] - timeline_.start_ns[t];
      device.compute_ns += time_ns;
      if (is_recomputed(op)) device.recompute_ns += time_ns;
      if (timeline_.end_ns[t] >= 0) device.host_wait_ns += problem_.copies_ns(placement_[number], number);
    }
    const auto exposed = exposed_communication(problem_, placement_, timeline_);
    for (size_t d = 0; d < result_.devices.size(); ++d) {
      auto& device = result_.devices[d];
      device.exposed_ns = exposed.purpose_ns[d];
      device.idle_ns = end_ns - device.compute_ns - exposed.device_ns[d];
    }
  }

  void add_traffic() {
    using Key = std::tuple<bool, CollectiveKind, std::vector<int32_t>, Phase, int32_t, int64_t>;
    std::map<Key, int64_t> counts;
    for (const auto& sent : timeline_.transfers) {
      const int32_t op = sent.task % problem_.operators();
      counts[{true, {}, {sent.from, sent.to}, graph_.op(op).phase, group_[op], sent.bytes}] += 1;
    }
    for (const auto& run : timeline_.collectives) {
      const auto& collective = graph_.collectives()[run.collective];
      std::vector<int32_t> devices;
      for (const int32_t member : collective.members) devices.push_back(placement_[member]);
      std::sort(devices.begin(), devices.end());
      devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
      const int32_t op = collective.members[0];
      if (devices.size() > 1)
        counts[{false, collective.kind, std::move(devices), graph_.op(op).phase, group_[op],
                collective.bytes}] += 1;
    }
    for (const auto& [key, count] : counts) {
      const auto& [send, kind, devices, phase, group, bytes] = key;
      result_.traffic.push_back({send, kind, devices, phase, group, bytes, count});
    }
  }

  const Problem& problem_;
  const Graph& graph_;
  std::span<const int32_t> placement_;
  const Timeline& timeline_;
  std::span<const int32_t> group_;
  std::vector<std::vector<Change>> changes_;  // [device]
  std::vector<int32_t> input_part_;           // [forward operator]: its backward operator
  Account result_;
};

}  // namespace

Account account(const Problem& problem, std::span<const int32_t> placement,
                const Timeline& timeline, std::span<const int32_t> group, int32_t groups) {
  return Accounting(problem, placement, timeline, group, groups).run();
}

}  // namespace trinity
