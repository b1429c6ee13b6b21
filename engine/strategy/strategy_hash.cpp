#include <bit>

#include "base/hash.h"
#include "strategy/mesh_words.h"
#include "strategy/strategy.h"

namespace trinity {
namespace {

void add(Hasher& hash, double value) { hash.add(std::bit_cast<uint64_t>(value)); }

template <class Number>
void add(Hasher& hash, const std::vector<Number>& list) {
  hash.add(static_cast<uint64_t>(list.size()));
  for (const auto value : list) hash.add(static_cast<uint64_t>(value));
}

void add(Hasher& hash, const RecomputeWord<const Parallelism>& word) {
  hash.add(static_cast<uint64_t>(word.given.recompute) | uint64_t{word.given.recompute_modules} << 8);
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
  add(hash, schedule.stage);
  for (const auto& tasks : schedule.order) add(hash, tasks);
  add(hash, schedule.tasks);
}

void add(Hasher& hash, const std::map<std::string, OperatorChoice>& operators) {
  for (const auto& [name, rule] : operators) {
    hash.add(name).add(uint64_t{rule.recompute.has_value()});
    hash.add(uint64_t{rule.recompute.value_or(false)}).add(uint64_t{rule.split.has_value()});
    hash.add(rule.split.value_or(""));
  }
}

/// A visitor of words.
struct WordHasher {
  Hasher& hash;
  const Parallelism& given;

  template <class Get>
  void operator()(const MeshWord&, Get get) {
    add_value(get(given));
  }
  void group(const char*, auto words) { words(); }

 private:
  template <class Value>
  void add_value(const Value& value) {
    if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>)
      hash.add(static_cast<uint64_t>(value));
    else if constexpr (std::is_same_v<Value, std::string>)
      hash.add(value);
    else
      add(hash, value);
  }
};

void add(Hasher& hash, const Parallelism& given) { each_mesh_word(WordHasher{hash, given}); }

void add(Hasher& hash, const OperatorSplit& split) {
  add(hash, split.factors);
  add(hash, split.devices);
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
  add(hash, schedule.priority);
  for (const auto* list : {&schedule.order, &schedule.order_first, &schedule.weight_versions})
    add(hash, *list);
  return hash.value();
}

uint64_t hash_value(const Parallelism& given) {
  Hasher hash;
  add(hash, given);
  return hash.value();
}

uint64_t hash_value(const Strategy& strategy) {
  Hasher hash;
  add(hash, strategy.placement);
  add(hash, strategy.schedule);
  if (strategy.parallelism) add(hash, *strategy.parallelism);
  for (const auto& split : strategy.splits) add(hash, split);
  if (strategy.replication) add(hash, *strategy.replication);
  return hash.value();
}

}  // namespace trinity
