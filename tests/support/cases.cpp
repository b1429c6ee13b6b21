#include "support/cases.h"
#include "support/tier.h"

#include <algorithm>
#include <tuple>

namespace trinity::test {
namespace {

/// Builds one random graph, operator by operator.
class StepMaker {
 public:
  StepMaker(RandomStream& random, int operators) : random_(random), operators_(operators) {}

  std::shared_ptr<const Graph> make(bool collectives) {
    for (int i = 0; i < operators_; ++i) {
      phase_ = i * 5 < operators_ * 2   ? Phase::forward
               : i * 5 < operators_ * 4 ? Phase::backward
                                        : Phase::update;
      if (collectives && random_.below(8) == 0)
        add_collective(i);
      else
        add_operator(i);
    }
    return std::make_shared<const Graph>(builder_.build());
  }

 private:
  /// A random earlier tensor nearby that an operator of this phase may read, or -1.
  int32_t earlier() {
    const auto& own = tensors_[phase_ == Phase::update ? random_.below(2) : 0];
    if (own.empty()) return -1;
    return own[own.size() - 1 - random_.below(std::min<uint64_t>(10, own.size()))];
  }

  void write(int32_t op, int64_t bytes) {
    Tensor tensor;
    tensor.bytes = bytes;
    tensors_[phase_ == Phase::update ? 1 : 0].push_back(builder_.add_output(op, tensor));
  }

  int64_t some_bytes() {
    return random_.below(8) == 0 ? 0 : static_cast<int64_t>(random_.below(100000));
  }

  /// Adds weights that later operators read, sometimes across devices.
  void add_variable(int i) {
    Operator op;
    op.name = "op" + std::to_string(i);
    op.type = "Variable";
    op.phase = phase_;
    op.extra_parameter_bytes = some_bytes();
    const int64_t bytes = op.extra_parameter_bytes;
    write(builder_.add_operator(std::move(op)), bytes);
  }

  void add_operator(int i) {
    if (random_.below(12) == 0) return add_variable(i);
    Operator op;
    op.name = "op" + std::to_string(i);
    op.phase = phase_;
    const int32_t viewed = random_.below(6) == 0 ? earlier() : -1;
    op.type = viewed >= 0 ? "Reshape" : "Work";
    if (viewed < 0 || random_.below(3) == 0)
      op.measured_time_s =
          random_.below(7) == 0 ? 0 : static_cast<double>(1 + random_.below(50000)) * 1e-9;
    if (random_.below(4) == 0) op.workspace_bytes = static_cast<int64_t>(random_.below(50000));
    op.extra_parameter_bytes = static_cast<int64_t>(random_.below(10000));
    const int32_t id = builder_.add_operator(op);
    if (viewed >= 0) builder_.read(id, viewed);
    for (uint64_t reads = random_.below(4); reads > 0; --reads)
      if (const int32_t tensor = earlier(); tensor >= 0) builder_.read(id, tensor);
    if (viewed >= 0) write(id, builder_.tensor(viewed).bytes);
    for (uint64_t outputs = random_.below(3); outputs > 0; --outputs) write(id, some_bytes());
  }

  void add_collective(int i) {
    Collective collective;
    collective.name = "collective" + std::to_string(i);
    collective.bytes = some_bytes();
    constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                        CollectiveKind::broadcast};
    collective.kind = kinds[random_.below(3)];
    const auto members = 1 + random_.below(4);
    std::vector<int32_t> inputs;
    for (uint64_t m = 0; m < members; ++m) inputs.push_back(earlier());
    for (uint64_t m = 0; m < members; ++m) {
      Operator op;
      op.name = collective.name + "@" + std::to_string(m);
      op.type = "Collective";
      op.phase = phase_;
      collective.members.push_back(builder_.add_operator(op));
      if (inputs[m] >= 0) builder_.read(collective.members.back(), inputs[m]);
    }
    for (const int32_t member : collective.members) write(member, collective.bytes);
    builder_.add_collective(std::move(collective));
  }

  RandomStream& random_;
  int operators_;
  Phase phase_ = Phase::forward;
  GraphBuilder builder_{"step"};
  std::vector<int32_t> tensors_[2];  // written in every micro-batch; written by updates
};

}  // namespace

std::shared_ptr<const Graph> random_step(RandomStream& random, int operators, bool collectives) {
  return StepMaker(random, operators).make(collectives);
}

ClusterSpec random_cluster(RandomStream& random, int devices) {
  const double bandwidth = 1e9 * static_cast<double>(1 + random.below(20));
  const double latency_s = random.below(4) == 0 ? 0 : 1e-6 * static_cast<double>(random.below(10));
  auto spec = uniform_spec(devices, bandwidth, latency_s);
  hold_framework(random, spec);
  const auto shape = random.below(4);
  if (shape == 1 && devices > 2) {
    spec.links.clear();
    for (int d = 0; d < devices; ++d)
      spec.links.push_back({"d" + std::to_string(d), "d" + std::to_string((d + 1) % devices),
                            bandwidth, latency_s, random.below(2) == 0});
  } else if (shape == 2 && devices > 1) {
    for (int d = devices / 2; d < devices; ++d) spec.links[d].to = "other";
    spec.links.push_back({"switch", "other", bandwidth / 3, 2e-6, random.below(2) == 0});
    for (int d = 0; d < devices; ++d) spec.devices[d].node = d < devices / 2 ? "n0" : "n1";
    if (random.below(2) == 0) spec.switches.push_back({"switch", bandwidth * 1.5});
  } else if (shape == 3) {
    return spec;  // equal devices, equal links
  }
  for (auto& device : spec.devices) device.speed = random.below(2) ? 1 : 0.5;
  return spec;
}

Case random_case(uint64_t index, const CaseOptions& options) {
  RandomStream random(law_seed(), "case", index);
  const auto below = [&](int most) {
    return 1 + static_cast<int>(random.below(static_cast<uint64_t>(most)));
  };
  auto spec = random_cluster(random, below(options.most_devices));
  spec.queue = options.queue;
  const auto cluster = std::make_shared<const Cluster>(spec);
  const auto graph = random_step(random, below(options.most_operators), options.collectives);
  auto rules = SimulationRules::standard(*cluster);
  if (options.queue == QueueModel::sender || options.queue == QueueModel::pair) {
    if (random.below(4) == 0) rules.device_dead_ns = 5700;
    if (random.below(4) == 0) rules.link_dead_ns = 25000;
    rules.dead_after_free = random.below(2) == 0;
  }
  Case result;
  result.problem = std::make_shared<const Problem>(graph, cluster, rules);
  result.spec = spec;
  result.placement = random_placement(random, *graph, cluster->device_count());
  result.schedule.dispatch = options.dispatch;
  result.schedule.micro_batches = below(options.most_micro_batches);
  if (options.dispatch == DispatchRule::priority)
    for (int32_t o = 0; o < graph->operator_count(); ++o)
      result.schedule.priority.push_back(static_cast<int64_t>(random.below(20)));
  return result;
}

Schedule order_of(const Problem& problem, const Timeline& timeline) {
  Schedule schedule;
  schedule.micro_batches = timeline.micro_batches;
  schedule.dispatch = DispatchRule::order;
  schedule.order_first.push_back(0);
  for (int32_t d = 0; d < problem.devices(); ++d) {
    // Tasks without duration start together with their successors.
    std::vector<std::tuple<int64_t, int64_t, int64_t, int32_t>> tasks;
    for (size_t t = 0; t < timeline.start_ns.size(); ++t) {
      const auto& op = problem.graph().op(static_cast<int32_t>(t) % problem.operators());
      if (timeline.device[t] == d && timeline.start_ns[t] >= 0 && op.collective < 0)
        tasks.push_back({timeline.start_ns[t], timeline.end_ns[t], timeline.ready_ns[t],
                         static_cast<int32_t>(t)});
    }
    std::sort(tasks.begin(), tasks.end());
    for (const auto& task : tasks) schedule.order.push_back(std::get<3>(task));
    schedule.order_first.push_back(static_cast<int32_t>(schedule.order.size()));
  }
  return schedule;
}

}  // namespace trinity::test
