#include <bit>

#include "base/hash.h"
#include "strategy/strategy.h"

namespace trinity {
namespace {

void add(Hasher& hash, double value) { hash.add(std::bit_cast<uint64_t>(value)); }

template <class Number>
void add_all(Hasher& hash, const std::vector<Number>& list) {
  hash.add(static_cast<uint64_t>(list.size()));
  for (const auto value : list) hash.add(static_cast<uint64_t>(value));
}

void add(Hasher& hash, const Scalar& scalar) {
  hash.add(static_cast<uint64_t>(scalar.index()));
  if (const auto* number = std::get_if<double>(&scalar))
    add(hash, *number == 0 ? 0.0 : *number);
  else if (const auto* text = std::get_if<std::string>(&scalar))
    hash.add(*text);
  else
    hash.add(uint64_t{std::get<bool>(scalar)});
}

void add(Hasher& hash, const PipelineOrder& order) {
  for (const auto& tasks : order) {
    hash.add(static_cast<uint64_t>(tasks.size()));
    for (const auto& task : tasks)
      hash.add(static_cast<uint64_t>(task.work)).add(static_cast<uint64_t>(task.chunk)).add(static_cast<uint64_t>(task.micro_batch));
  }
}

void add(Hasher& hash, const ScheduleSpec& schedule) {
  hash.add(schedule.name).add(static_cast<uint64_t>(schedule.micro_batches));
  for (const double priority : schedule.priority) add(hash, priority == 0 ? 0.0 : priority);
  add_all(hash, schedule.stage);
  for (const auto& tasks : schedule.order) add_all(hash, tasks);
  add(hash, schedule.tasks);
}

void add(Hasher& hash, const Parallelism& given) {
  const auto& mesh = given.mesh;
  for (const int32_t size : {mesh.data, mesh.tensor, mesh.pipeline, mesh.context, mesh.expert,
                             mesh.placement})
    hash.add(static_cast<uint64_t>(size));
  add_all(hash, mesh.order);
  add_all(hash, mesh.devices);
  hash.add(given.schedule).add(static_cast<uint64_t>(given.virtual_stages));
  hash.add(static_cast<uint64_t>(given.micro_batches));
  add_all(hash, given.stages);
  add(hash, given.tasks);
  hash.add(static_cast<uint64_t>(given.recompute) | uint64_t{given.recompute_modules} << 8);
  hash.add(uint64_t{given.sequence_parallel});
  hash.add(uint64_t{given.scatter_gather}).add(uint64_t{given.overlap_tp_grad_allreduce});
  hash.add(static_cast<uint64_t>(given.zero_stage)).add(static_cast<uint64_t>(given.bucket_bytes));
  hash.add(static_cast<uint64_t>(given.cp_comm_type));
  const auto& way = given.sync;
  hash.add(static_cast<uint64_t>(way.kind)).add(static_cast<uint64_t>(way.algorithm));
  for (const int32_t number : {way.inner, way.every, way.servers})
    hash.add(static_cast<uint64_t>(number));
  hash.add(uint64_t{way.asynchronous});
  for (const auto& [name, rule] : given.operators) {
    hash.add(name).add(uint64_t{rule.recompute.has_value()});
    hash.add(uint64_t{rule.recompute.value_or(false)}).add(uint64_t{rule.split.has_value()});
    hash.add(rule.split.value_or(""));
  }
  add_all(hash, given.inside);
}

void add(Hasher& hash, const OperatorSplit& split) {
  add_all(hash, split.factors);
  add_all(hash, split.devices);
  hash.add(static_cast<uint64_t>(split.copies)).add(uint64_t{split.in_order});
}

void add(Hasher& hash, const Replication& replication) {
  hash.add(replication.kind).add(static_cast<uint64_t>(replication.replicas));
  for (const auto& [name, option] : replication.options) {
    hash.add(name).add(static_cast<uint64_t>(option.index()));
    if (const auto* scalar = std::get_if<Scalar>(&option)) {
      add(hash, *scalar);
      continue;
    }
    for (const auto& [key, value] : std::get<1>(option)) {
      hash.add(key);
      add(hash, value);
    }
  }
}

}  // namespace

uint64_t hash_value(const Schedule& schedule) {
  Hasher hash;
  hash.add(static_cast<uint64_t>(schedule.micro_batches));
  hash.add(static_cast<uint64_t>(schedule.dispatch));
  for (const int32_t number : {schedule.stream, schedule.measured_from, schedule.measured_to})
    hash.add(static_cast<uint64_t>(number));
  hash.add(static_cast<uint64_t>(schedule.contradicts));
  add_all(hash, schedule.priority);
  for (const auto* list : {&schedule.order, &schedule.order_first, &schedule.weight_versions})
    add_all(hash, *list);
  return hash.value();
}

uint64_t hash_value(const Parallelism& given) {
  Hasher hash;
  add(hash, given);
  return hash.value();
}

uint64_t hash_value(const Strategy& strategy) {
  Hasher hash;
  add_all(hash, strategy.placement);
  add(hash, strategy.schedule);
  if (strategy.parallelism) add(hash, *strategy.parallelism);
  for (const auto& split : strategy.splits) add(hash, split);
  if (strategy.replication) add(hash, *strategy.replication);
  return hash.value();
}

}  // namespace trinity
