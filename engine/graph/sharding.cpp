#include "graph/sharding.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "base/error.h"
#include "base/index.h"
#include "graph/meaning.h"
#include "graph/nameless.h"
#include "graph/operator_types.h"
#include "graph/split_backward.h"

namespace trinity {
namespace {

/// Weights of a device that are gathered together, and their readers.
struct Unit {
  std::string name;
  int64_t bytes = 0;
  int32_t owner = -1;                      ///< its first operator
  std::vector<int32_t> forward, backward;  ///< operators that read them, ascending

  const std::vector<int32_t>& readers(Phase phase) const {
    return phase == Phase::forward ? forward : backward;
  }
};

/// A gather of a unit's weights for one phase.
struct Gather {
  Phase phase;
  size_t unit;
  int32_t behind;        ///< first reader of the previous unit; -1: none
  int32_t weights = -1;  ///< its output
};

class Sharding {
 public:
  Sharding(Graph graph, const ShardingOptions& options)
      : options_(options), builder_(std::move(graph)), operators_(builder_.operator_count()) {}

  Sharded run() {
    if (options_.level == 3) plan_gathers();
    for (int32_t op = 0; op < operators_; ++op) shrink(op);
    for (const auto& [op, gather] : before_) add_gather(gathers_[gather], op);
    for (const auto& [op, gather] : reads_) builder_.read(op, gathers_[gather].weights);
    if (options_.level < 3) gather_updated();
    for (size_t c = 0; c < builder_.collectives().size(); ++c) {
      auto& collective = builder_.collective(static_cast<int32_t>(c));
      if (holds_shares(builder_.op(collective.members[0])))
        collective.bytes = share(collective.bytes, collective.members[0]);
    }
    return finish();
  }

 private:
  /// Number of replicas over which the states of an operator are sharded.
  int32_t copies(int32_t op) const {
    return options_.spread.empty() ? options_.replicas
                                   : std::max(1, options_.replicas / options_.spread[op]);
  }
  int32_t apart(int32_t op) const { return options_.apart.empty() ? 0 : options_.apart[op]; }
  int64_t share(int64_t whole, int32_t op) const { return (whole + copies(op) - 1) / copies(op); }
  /// True if the outputs of an operator are gradient shards.
  bool holds_shares(const Operator& op) const {
    return options_.level >= 2 && op.phase == Phase::update && op.collective >= 0 &&
           (options_.ahead.empty() || !options_.ahead[at(op.collective)]);
  }
  static bool is_update(const Operator& op) {
    return op.phase == Phase::update && op.collective < 0 && op.forward >= 0;
  }

  void shrink(int32_t op) {
    auto& about = builder_.op(op);
    if (is_update(about)) {
      about.flops /= copies(op);
      about.traffic_bytes /= copies(op);
      about.persistent_bytes = share(about.persistent_bytes, op);
      if (has_meaning(about)) about.attributes["shares"] = int64_t{copies(op)};
    }
    if (options_.level == 3 && copies(op) > 1) shrink_weights(about, op);
    if (!holds_shares(about)) return;
    for (const int32_t output : about.outputs) {
      auto& tensor = builder_.tensor(output);
      tensor.bytes = share(tensor.bytes, op);
      tensor.shape.clear();
    }
  }

  void shrink_weights(Operator& copy, int32_t op) const {
    if (has_meaning(copy) && !copy.parameters.empty()) state_shares(copy, copies(op));
    if (!copy.parameters.empty())
      for (auto& parameter : copy.parameters.edit())
        parameter.shape = {share(parameter.elements(), op)};
    copy.extra_parameter_bytes = share(copy.extra_parameter_bytes, op);
  }

  /// States the shapes of the full weights.
  static void state_shares(Operator& op, int64_t shares) {
    op.attributes["shares"] = shares;
    for (size_t i = 0; i < op.parameters.size(); ++i)
      op.attributes[fmt::format("weight{}_shape", i)] = op.parameters[i].shape;
  }

  int32_t add_gather(std::string name, int64_t bytes, int32_t near, Phase phase) {
    Operator gather;
    gather.name = std::move(name);
    gather.type = "WeightGather";
    gather.phase = phase;
    gather.traffic_bytes = 0;
    made_.push_back({near, bytes});
    return builder_.add_operator(std::move(gather));
  }

  /// Gathers updated weights, in buckets of one device and equal numbers of copies.
  void gather_updated() {
    // The gather that is being filled, and its bytes.
    std::map<std::tuple<int32_t, int32_t, int32_t>, std::pair<int32_t, int64_t>> open;
    int32_t count = 0;
    for (int32_t op = 0; op < operators_; ++op) {
      const auto& about = builder_.op(op);
      if (!is_update(about) || copies(op) == 1) continue;
      const int64_t bytes = builder_.op(about.forward).trainable_bytes();
      Tensor updated;
      updated.name = name_of([&] { return about.name + "/share"; });
      updated.bytes = share(bytes, op);
      const int32_t token = builder_.add_output(op, std::move(updated));
      const auto key = std::tuple(options_.device[op], copies(op), apart(op));
      auto& [gather, held] = open.try_emplace(key, -1, 0).first->second;
      if (gather < 0 || held + bytes > options_.bucket_bytes) {
        gather = add_gather(fmt::format("weights{}", count++), 0, op, Phase::update);
        held = 0;
      }
      builder_.read(gather, token);
      held += bytes;
      made_[gather - operators_].gathered = held;
    }
  }

  /// Operators whose weights an operator reads: itself, or a variable; empty: none.
  std::vector<int32_t> weights_read(int32_t op) const {
    std::vector<int32_t> owners;
    const auto& about = builder_.op(op);
    if (about.phase == Phase::update || is_variable(about) || is_weight_part(about)) return owners;
    const int32_t forward = about.phase == Phase::forward ? op : about.forward;
    const bool sum = about.phase == Phase::backward && about.type == "Sum";
    if (forward >= 0 && !sum && about.collective < 0 && !is_variable(builder_.op(forward)) &&
        builder_.op(forward).parameter_bytes() > 0)
      owners.push_back(forward);
    for (const int32_t input : about.inputs)
      if (is_variable(builder_.op(builder_.tensor(input).producer)))
        owners.push_back(builder_.tensor(input).producer);
    return owners;
  }

  /// Groups weights into units, and places each gather before the first operator that reads it, so
  /// that the device keeps its order otherwise.
  void plan_gathers() {
    find_units();
    for (auto& [device, list] : of_device_)
      for (const auto phase : {Phase::forward, Phase::backward}) {
        const auto readers = [&](size_t unit) -> const std::vector<int32_t>& {
          return units_[unit].readers(phase);
        };
        std::erase_if(list, [&](size_t unit) { return readers(unit).empty(); });
        std::sort(list.begin(), list.end(),
                  [&](size_t a, size_t b) { return readers(a)[0] < readers(b)[0]; });
        for (size_t i = 0; i < list.size(); ++i) {
          const auto number = gathers_.size();
          gathers_.push_back({phase, list[i], i > 0 ? readers(list[i - 1])[0] : -1});
          before_.emplace(readers(list[i])[0], number);
          for (const int32_t reader : readers(list[i])) reads_.emplace(reader, number);
        }
      }
  }

  void find_units() {
    // Key: device, unit, copies, `apart`.
    std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, size_t> number;
    std::vector<bool> counted(at(operators_), false);
    for (int32_t op = 0; op < operators_; ++op)
      for (const int32_t owner : weights_read(op)) {
        if (copies(owner) == 1) continue;
        const int32_t key = options_.unit[owner] >= 0 ? options_.unit[owner] : -1 - owner;
        const int32_t device = options_.device[owner];
        const auto of = std::tuple(device, key, copies(owner), apart(owner));
        const auto found = number.emplace(of, units_.size()).first;
        if (found->second == units_.size()) {
          units_.push_back({builder_.op(owner).name, 0, owner, {}, {}});
          of_device_[device].push_back(found->second);
        }
        Unit& unit = units_[found->second];
        if (!counted[owner]) unit.bytes += builder_.op(owner).parameter_bytes();
        counted[owner] = true;
        (builder_.op(op).phase == Phase::forward ? unit.forward : unit.backward).push_back(op);
      }
  }

  /// Gathers a unit's weights when the previous unit begins (its first operator has ended), or when
  /// the inputs of its own first operator have arrived.
  void add_gather(Gather& gather, int32_t before) {
    const Unit& unit = units_[gather.unit];
    const bool first = gather.phase == Phase::forward;
    const auto& readers = unit.readers(gather.phase);
    const int32_t id = add_gather(unit.name + (first ? "/gather" : "/gather_again"), unit.bytes,
                                  unit.owner, gather.phase);
    builder_.put_before(before, id);
    const bool starts = gather.behind >= 0 && gather.behind < readers[0];
    if (const int32_t trigger = starts ? written_by(gather.behind) : -1; trigger >= 0)
      builder_.read(id, trigger);
    else
      for (const int32_t input : builder_.op(readers[0]).inputs)
        if (!is_variable(builder_.op(builder_.tensor(input).producer))) builder_.read(id, input);
    Tensor whole;
    whole.name = unit.name + (first ? "/weights" : "/weights_again");
    whole.bytes = unit.bytes;
    gather.weights = builder_.add_output(id, std::move(whole));
  }

  int32_t written_by(int32_t op) const {
    return builder_.op(op).outputs.empty() ? -1 : builder_.op(op).outputs[0];
  }

  Sharded finish() {
    Sharded result;
    std::vector<int32_t> numbers;
    result.graph = builder_.build(&numbers);
    for (const int32_t number : numbers) {
      const bool gathers = number >= operators_;
      const Made made = gathers ? made_[number - operators_] : Made{number, 0};
      result.origin.push_back(gathers ? -1 : number);
      result.near.push_back(made.near);
      result.gathered.push_back(made.gathered);
    }
    return result;
  }

  struct Made {
    int32_t near;
    int64_t gathered;
  };

  const ShardingOptions& options_;
  GraphBuilder builder_;
  int32_t operators_;       // of the graph
  std::vector<Made> made_;  // [gather]
  std::vector<Unit> units_;
  std::map<int32_t, std::vector<size_t>> of_device_;  // device -> units
  std::vector<Gather> gathers_;
  // gathers by operator: placed before it, read by it
  std::multimap<int32_t, size_t> before_, reads_;
};

}  // namespace

Sharded shard_states(Graph graph, const ShardingOptions& options) {
  const auto count = at(graph.operator_count());
  if (options.level < 1 || options.level > 3)
    throw ArgumentError("sharding graph '{}': expected ZeRO stage 1, 2 or 3, got {}", graph.name(), options.level);
  if (!options.spread.empty() && options.spread.size() != count)
    throw ArgumentError("sharding graph '{}': expected the spread of {} operators, got {}", graph.name(), count,
                        options.spread.size());
  if (options.replicas < 2)
    throw ArgumentError("sharding graph '{}': expected at least 2 replicas, got {}", graph.name(), options.replicas);
  if (options.device.size() != count || (options.level == 3 && options.unit.size() != count))
    throw ArgumentError("sharding graph '{}': expected devices and units of {} operators, got {} and {}", graph.name(),
                        count, options.device.size(), options.unit.size());
  return Sharding(std::move(graph), options).run();
}

}  // namespace trinity
