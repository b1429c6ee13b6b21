#include "graph/experts.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/index.h"
#include "base/words.h"
#include "graph/iteration_space.h"
#include "graph/meaning.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

/// Finds experts in the forward operators of a graph.
class ExpertFinder {
 public:
  explicit ExpertFinder(const Graph& graph)
      : graph_(graph), layer_(at(graph.operator_count()), -1) {}

  std::vector<ExpertLayer> run() {
    find_batched();
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (graph_.op(op).phase == Phase::forward && graph_.op(op).type == "Split") find_branches(op);
    std::sort(layers_.begin(), layers_.end(),
              [](const auto& a, const auto& b) { return a.members[0] < b.members[0]; });
    for (auto& layer : layers_) {
      layer.name = graph_.op(layer.members[0]).name;
      for (const int32_t op : layer.members)
        if (layer.routing.per_token == 0) layer.routing = routing_of(graph_.op(op));
    }
    return std::move(layers_);
  }

 private:
  static bool begins_with(const TensorAxes& axes, int32_t dimension) {
    return !axes.empty() && !axes[0].empty() && axes[0][0] == dimension;
  }
  const std::vector<int64_t>& shape(int32_t tensor) const { return graph_.tensor(tensor).shape; }
  int32_t producer(int32_t tensor) const { return graph_.tensor(tensor).producer; }

  /// True if a Split splits the first axis of its output: a fused QKV projection.
  bool is_taken_apart(int32_t op) const {
    return std::ranges::any_of(graph_.readers(op), [&](int32_t reader) {
      const auto& about = graph_.op(reader);
      return about.type == "Split" && integer_attribute(about.attributes, "axis", 0) == 0;
    });
  }

  /// True for a matmul of every expert's rows with its own weights.
  bool is_expert_product(int32_t op) const {
    const auto& about = graph_.op(op);
    if (about.phase != Phase::forward || about.type != "Einsum" || about.inputs.size() != 1 ||
        about.parameters.empty() || about.outputs.size() != 1)
      return false;
    const auto space = iteration_space(graph_, op);
    for (size_t d = 0; d < space.dimensions.size(); ++d) {
      const auto number = static_cast<int32_t>(d);
      if (space.dimensions[d].size > 1 && space.dimensions[d].role == DimensionRole::batch &&
          begins_with(space.inputs[0], number) && begins_with(space.parameters[0], number) &&
          begins_with(space.outputs[0], number) && shape(about.outputs[0]).size() >= 3)
        return !is_taken_apart(op);
    }
    return false;
  }

  /// True if the first axis of an output is the experts axis of an input.
  bool carries(int32_t op) const {
    const auto& about = graph_.op(op);
    if (about.phase != Phase::forward || about.inputs.empty() || about.outputs.empty())
      return false;
    const auto space = iteration_space(graph_, op);
    if (space.outputs[0].empty() || space.outputs[0][0].empty()) return false;
    const int32_t d = space.outputs[0][0][0];
    const auto& dimension = space.dimensions[at(d)];
    return dimension.splits && dimension.role != DimensionRole::coupled &&
           std::any_of(space.inputs.begin(), space.inputs.end(),
                       [&](const TensorAxes& axes) { return begins_with(axes, d); });
  }

  /// Finds matmuls and the operators between two of them; connected ones belong to one layer.
  void find_batched() {
    const auto count = at(graph_.operator_count());
    std::vector<bool> product(count, false), after(count, false), before(count, false);
    bool any = false;
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      any = (product[op] = is_expert_product(op)) || any;
    if (!any) return;
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      bool behind = false;
      for (const int32_t input : graph_.op(op).inputs) behind = behind || after[producer(input)];
      after[op] = product[op] || (behind && carries(op));
    }
    for (int32_t op = graph_.operator_count() - 1; op >= 0; --op) {
      bool ahead = product[op];
      for (const int32_t reader : graph_.readers(op)) ahead = ahead || before[reader];
      before[op] = product[op] || (ahead && after[op]);
    }
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (product[op] || (after[op] && before[op])) join(op, before, after);
  }

  /// Adds a member to the layer of its inputs, or of an operator with a common input.
  void join(int32_t op, const std::vector<bool>& before, const std::vector<bool>& after) {
    const auto& about = graph_.op(op);
    for (const int32_t input : about.inputs) {
      if (layer_[op] < 0) layer_[op] = layer_[producer(input)];
      if (shape(input).size() < 2 || shape(input)[0] != shape(about.outputs[0])[0]) continue;
      for (const int32_t other : graph_.readers_of(input))
        if (layer_[op] < 0 && before[other] && after[other]) layer_[op] = layer_[other];
    }
    if (layer_[op] < 0) {
      layer_[op] = static_cast<int32_t>(layers_.size());
      layers_.push_back({"", shape(about.outputs[0])[0], shape(about.outputs[0]).size(), {}, {}});
    }
    layers_[layer_[op]].members.push_back(op);
  }

  /// The operators from one output of a Split to the Concat that stacks results; empty if there is
  /// any other connection.
  std::vector<int32_t> branch(int32_t split, int32_t output, int32_t& joint) const {
    std::vector<int32_t> found;
    std::vector<int32_t> open = {output};
    bool weights = false;
    while (!open.empty()) {
      const int32_t tensor = open.back();
      open.pop_back();
      bool read = false, fits = true;
      for (const int32_t reader : graph_.readers_of(tensor)) {
        const auto& about = graph_.op(reader);
        if (about.phase != Phase::forward) continue;
        read = true;
        if (about.type == "Concat" && integer_attribute(about.attributes, "new_axis", 0) != 0) {
          fits = fits && (joint < 0 || joint == reader);
          joint = reader;
        } else if (std::find(found.begin(), found.end(), reader) == found.end()) {
          fits = fits && reader > split;
          found.push_back(reader);
          weights = weights || about.trainable_bytes() > 0;
          open.insert(open.end(), about.outputs.begin(), about.outputs.end());
        }
      }
      if (!fits || (!read && tensor == output)) return {};
    }
    std::sort(found.begin(), found.end());
    if (joint < 0 || !weights) return {};
    return found;
  }

  /// True if all inputs of a branch belong to it alone.
  bool closed(const std::vector<int32_t>& branch, int32_t split, int32_t output) const {
    return std::all_of(branch.begin(), branch.end(), [&](int32_t op) {
      const auto& inputs = graph_.op(op).inputs;
      return std::all_of(inputs.begin(), inputs.end(), [&](int32_t input) {
        const int32_t from = producer(input);
        return from == split ? input == output
                             : graph_.op(from).inputs.empty() ||
                                   std::binary_search(branch.begin(), branch.end(), from);
      });
    });
  }

  bool alike(const std::vector<int32_t>& a, const std::vector<int32_t>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](int32_t x, int32_t y) {
      const auto &one = graph_.op(x), &other = graph_.op(y);
      return one.type == other.type && one.flops == other.flops &&
             one.trainable_bytes() == other.trainable_bytes() &&
             one.outputs.size() == other.outputs.size();
    });
  }

  void find_branches(int32_t split) {
    const auto& about = graph_.op(split);
    const auto experts = static_cast<int64_t>(about.outputs.size());
    if (integer_attribute(about.attributes, "keepdims", 1) != 0 || experts < 2 ||
        shape(about.inputs[0]).size() < 2 || shape(about.inputs[0])[0] != experts)
      return;
    ExpertLayer layer{"", experts, shape(about.inputs[0]).size(), {split}, {}};
    int32_t joint = -1;
    for (const int32_t output : about.outputs) {
      auto found = branch(split, output, joint);
      if (found.empty() || !closed(found, split, output)) return;
      if (!layer.branches.empty() && !alike(layer.branches[0], found)) return;
      layer.members.insert(layer.members.end(), found.begin(), found.end());
      layer.branches.push_back(std::move(found));
    }
    const auto& stack = graph_.op(joint);
    if (static_cast<int64_t>(stack.inputs.size()) != experts ||
        shape(stack.outputs[0]).size() != layer.rank || shape(stack.outputs[0])[0] != experts)
      return;
    layer.members.push_back(joint);
    std::sort(layer.members.begin(), layer.members.end());
    layers_.push_back(std::move(layer));
  }

  const Graph& graph_;
  std::vector<int32_t> layer_;  // [operator], of the first form
  std::vector<ExpertLayer> layers_;
};

/// Treatment of an operator or tensor.
enum class Fate : uint8_t {
  same,
  batched,  ///< of all experts of a rank
  joint,    ///< splits or concatenates experts
  branch,   ///< of one expert that this rank keeps
  gone,     ///< of one that another rank has
};

class Spreading {
 public:
  Spreading(const Graph& graph, std::vector<ExpertLayer> layers, int32_t ranks)
      : graph_(graph),
        layers_(std::move(layers)),
        ranks_(ranks),
        builder_(graph),
        of_(at(graph.operator_count()), -1),
        fate_(of_.size(), Fate::same) {}

  SpreadExperts run() {
    find_fates();
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      fate_[op] == Fate::gone ? builder_.remove(op) : change(op);
    return finish();
  }

 private:
  bool follows(int32_t op) const {
    return graph_.op(op).phase != Phase::forward && graph_.op(op).forward >= 0;
  }
  int32_t producer(int32_t tensor) const { return graph_.tensor(tensor).producer; }

  /// True if an operator belongs to a single expert.
  bool is_of_one(int32_t op) const {
    return fate_[op] == Fate::branch || fate_[op] == Fate::gone;
  }

  /// Backward and update operators follow their forward operators; a gradient sum follows its
  /// terms.
  void find_fates() {
    for (size_t l = 0; l < layers_.size(); ++l) {
      const auto& layer = layers_[l];
      for (const int32_t op : layer.members) {
        of_[op] = static_cast<int32_t>(l);
        fate_[op] = layer.branches.empty() ? Fate::batched : Fate::joint;
      }
      const auto kept = static_cast<size_t>(layer.experts / ranks_);
      for (size_t e = 0; e < layer.branches.size(); ++e)
        for (const int32_t op : layer.branches[e]) fate_[op] = e < kept ? Fate::branch : Fate::gone;
    }
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      if (!follows(op)) continue;
      const auto& about = graph_.op(op);
      int32_t with = about.forward;
      if (about.phase == Phase::backward && about.type == "Sum" && !about.inputs.empty()) {
        const int32_t first = producer(about.inputs[0]);
        const bool one = std::all_of(about.inputs.begin(), about.inputs.end(), [&](int32_t input) {
          return of_[producer(input)] == of_[first] &&
                 fate_[producer(input)] == fate_[first];
        });
        if (one && (of_[first] != of_[with] || is_of_one(first))) with = first;
      }
      of_[op] = of_[with];
      fate_[op] = fate_[with];
    }
  }

  /// Converts [E, C, ...] to [E / ranks, C x ranks, ...].
  void share_experts(SharedList<int64_t>& shape) const {
    shape.edit()[0] /= ranks_;
    shape.edit()[1] *= ranks_;
  }
  bool has_experts(int32_t tensor, int32_t layer) const {
    const auto& shape = graph_.tensor(tensor).shape;
    return layer >= 0 && shape.size() == layers_[layer].rank && shape[0] == layers_[layer].experts;
  }

  /// Bytes of an operator's traffic for weights: weights that it reads, and weight gradients that
  /// it writes.
  double weight_traffic(int32_t op) const {
    const Operator& about = graph_.op(op);
    if (about.phase == Phase::forward) return static_cast<double>(about.parameter_bytes());
    if (about.phase != Phase::backward || about.forward < 0) return 0;
    int64_t bytes = graph_.op(about.forward).parameter_bytes();
    for (const int32_t output : about.outputs) {
      const Tensor& tensor = graph_.tensor(output);
      if (tensor.shape.empty()) bytes += tensor.bytes;
    }
    return static_cast<double>(bytes);
  }

  Operator shared(int32_t op) const {
    Operator copy = graph_.op(op);
    const auto r = static_cast<double>(ranks_);
    const double weights = weight_traffic(op);
    if (fate_[op] == Fate::batched) {
      for (auto& parameter : copy.parameters.edit()) parameter.shape.edit()[0] /= ranks_;
      copy.extra_parameter_bytes /= ranks_;
      if (copy.phase == Phase::update) {
        copy.flops /= r;
        copy.traffic_bytes /= r;
        copy.persistent_bytes /= ranks_;
      } else if (copy.traffic_bytes >= weights) {
        copy.traffic_bytes -= weights - weights / r;
      }
    } else if (fate_[op] == Fate::branch && copy.phase != Phase::update) {
      copy.flops *= r;
      if (copy.traffic_bytes >= weights)
        copy.traffic_bytes = (copy.traffic_bytes - weights) * r + weights;
      if (copy.measured()) copy.measured_time_s *= r;
      copy.workspace_bytes *= ranks_;
    }
    if (fate_[op] == Fate::joint) {
      const auto kept = layers_[of_[op]].experts / ranks_;
      for (const char* list : {"gradient_outputs", "gradient_inputs"}) keep_below(copy, list, kept);
    }
    return copy;
  }

  /// Keeps the outputs or inputs of a Split or Concat that belong to this rank's experts; an
  /// attribute that covers all stays.
  static void keep_below(Operator& op, const char* name, int64_t kept) {
    auto list = list_attribute(op, name);
    if (list.empty()) return;
    std::erase_if(list, [&](int64_t number) { return number >= kept; });
    op.attributes[name] = std::move(list);
  }

  /// A tensor as seen by operators on its producer's side.
  Tensor shared_tensor(int32_t tensor) const {
    Tensor copy = graph_.tensor(tensor);
    const int32_t from = copy.producer;
    const auto& about = graph_.op(from);
    if (fate_[from] == Fate::same) return copy;
    if (has_experts(tensor, of_[from])) {
      share_experts(copy.shape);
    } else if (copy.shape.empty()) {
      const bool weights = about.phase == Phase::backward && fate_[from] == Fate::batched;
      if (weights) copy.bytes = (copy.bytes + ranks_ - 1) / ranks_;
    } else if (fate_[from] == Fate::branch || fate_[from] == Fate::joint) {
      copy.shape.edit()[0] *= ranks_;
    }
    return copy;
  }

  void change(int32_t op) {
    Operator changed = shared(op);
    if (changed.forward >= 0 && follows_exchange(op)) changed.forward = exchange_of(op);
    changed.inputs.clear();
    for (const int32_t input : graph_.op(op).inputs) {
      if (fate_[producer(input)] == Fate::gone) {
        if (fate_[op] != Fate::joint) refuse(op, input);
        continue;
      }
      changed.inputs.push_back(read(op, input));
    }
    const auto& outputs = graph_.op(op).outputs;
    changed.outputs.clear();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const bool one = fate_[op] == Fate::joint && !has_experts(outputs[o], of_[op]);
      if (one && static_cast<int64_t>(o) >= layers_[of_[op]].experts / ranks_) break;
      changed.outputs.push_back(outputs[o]);
      builder_.replace(outputs[o], shared_tensor(outputs[o]));
    }
    builder_.op(op) = std::move(changed);
  }

  [[noreturn]] void refuse(int32_t op, int32_t tensor) const {
    throw ArgumentError("mesh: expert = {}: operator '{}' reads '{}', the output of an expert on another rank; only "
                        "the combine operator may do so", ranks_, graph_.op(op).name, graph_.op(producer(tensor)).name);
  }

  /// A tensor as an operator reads it: through an exchange if it is on the other side.
  int32_t read(int32_t op, int32_t tensor) {
    const int32_t from = producer(tensor);
    const int32_t layer = std::max(of_[from], of_[op]);
    const bool source = graph_.op(from).inputs.empty();
    if (of_[from] == of_[op] || source || !has_experts(tensor, layer)) return tensor;
    const bool inwards = of_[op] >= 0;
    const auto key = std::pair(tensor, inwards);
    if (const auto found = exchanged_.find(key); found != exchanged_.end()) return found->second;
    return exchanged_[key] = exchange(op, tensor, layer, inwards);
  }

  int32_t exchange(int32_t op, int32_t tensor, int32_t layer, bool inwards) {
    const auto& about = graph_.op(op);
    const Operator& from = graph_.op(producer(tensor));
    Operator made;
    made.type = "AllToAll";
    made.name = from.name + "/all_to_all";
    made.phase = about.phase;
    if (about.phase != Phase::forward) {
      made.type = "AllToAllGrad";
      made.forward = opposite(tensor, layer, inwards);
      made.name = from.name + "/all_to_all_grad";
    }
    const int32_t before = names_[made.name]++;
    if (before > 0) made.name += std::to_string(before + 1);
    made.traffic_bytes = 0;
    set_routing(made, layers_[layer].routing);
    made.inputs = {tensor};
    Tensor moved = graph_.tensor(tensor);
    moved.name.clear();
    if (inwards) share_experts(moved.shape);
    const int32_t id = builder_.add_operator(std::move(made));
    builder_.put_before(op, id);
    serves_.push_back(op);
    if (about.phase == Phase::forward) forward_.push_back({layer, inwards, tensor, id});
    return builder_.add_output(id, std::move(moved));
  }

  static void set_routing(Operator& op, const TokenRouting& routing) {
    if (routing.per_token == 0) return;
    op.attributes["experts"] = routing.experts;
    op.attributes["experts_per_token"] = routing.per_token;
    if (routing.groups == 1) return;
    op.attributes["expert_groups"] = routing.groups;
    op.attributes["group_topk"] = routing.group_topk;
  }

  /// True for a gradient sum over experts whose terms come through an exchange; it follows the
  /// exchange.
  bool follows_exchange(int32_t op) const {
    return follows(op) && of_[op] >= 0 && of_[graph_.op(op).forward] != of_[op];
  }
  int32_t exchange_of(int32_t sum) const {
    return forward_exchange(graph_.op(sum).outputs[0], of_[sum], true);
  }

  /// The forward exchange of which this is the gradient: a tensor of the same shape in the opposite
  /// direction.
  int32_t opposite(int32_t tensor, int32_t layer, bool inwards) const {
    return forward_exchange(tensor, layer, !inwards);
  }
  int32_t forward_exchange(int32_t tensor, int32_t layer, bool inwards) const {
    int32_t any = -1;
    for (const auto& made : forward_) {
      if (made.layer != layer || made.inwards != inwards) continue;
      any = made.id;
      if (graph_.tensor(made.tensor).shape == graph_.tensor(tensor).shape) return made.id;
    }
    return any;
  }

  SpreadExperts finish() {
    SpreadExperts result;
    std::vector<int32_t> numbers;
    result.graph = builder_.build(&numbers);
    result.origin.resize(at(ranks_));
    for (const int32_t number : numbers) {
      const bool exchanges = number >= graph_.operator_count();
      result.serves.push_back(exchanges ? serves_[number - graph_.operator_count()] : number);
      result.spread.push_back(!exchanges && fate_[number] != Fate::same ? ranks_ : 1);
      for (int32_t rank = 0; rank < ranks_; ++rank)
        result.origin[rank].push_back(exchanges ? -1 : on_rank(number, rank));
    }
    return result;
  }

  /// The operator on a rank that corresponds to a branch's operator: of another expert.
  int32_t on_rank(int32_t op, int32_t rank) {
    if (fate_[op] != Fate::branch) return op;
    if (twins_.empty()) find_twins();
    const auto found = twins_.find(op);
    return found == twins_.end() ? op : found->second[at(rank)];
  }

  /// Finds corresponding operators of branches: forward ones by position, and their followers.
  void find_twins() {
    std::map<int32_t, std::vector<int32_t>> followers;  // by forward operator
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (follows(op)) followers[graph_.op(op).forward].push_back(op);
    for (const auto& layer : layers_) {
      const size_t kept = at(layer.experts / ranks_);
      for (size_t e = 0; e < std::min(kept, layer.branches.size()); ++e)
        for (size_t i = 0; i < layer.branches[e].size(); ++i) {
          const auto twin = [&](int32_t rank) {
            return layer.branches[at(rank) * kept + e][i];
          };
          for (int32_t rank = 0; rank < ranks_; ++rank) {
            twins_[twin(0)].push_back(twin(rank));
            const auto &of_first = followers[twin(0)], &of_this = followers[twin(rank)];
            for (size_t k = 0; k < of_first.size(); ++k)
              twins_[of_first[k]].push_back(k < of_this.size() ? of_this[k] : of_first[k]);
          }
        }
    }
  }

  struct Forward {
    int32_t layer;
    bool inwards;
    int32_t tensor, id;
  };

  const Graph& graph_;
  std::vector<ExpertLayer> layers_;
  int32_t ranks_;
  GraphBuilder builder_;
  std::vector<int32_t> of_;  // [operator]: its layer of experts, or -1
  std::vector<Fate> fate_;
  std::map<std::pair<int32_t, bool>, int32_t> exchanged_;  // by tensor and direction
  std::vector<Forward> forward_;                           // exchanges
  std::map<std::string, int32_t> names_;
  std::map<int32_t, std::vector<int32_t>> twins_;  // by operator of the first rank, by rank
  std::vector<int32_t> serves_;                    // [exchange]
};

}  // namespace

std::vector<ExpertLayer> find_experts(const Graph& graph) { return ExpertFinder(graph).run(); }

SpreadExperts spread_experts(const Graph& graph, int32_t ranks) {
  if (ranks < 2)
    throw ArgumentError("mesh: expert = {}: expected at least 2 ranks", ranks);
  auto layers = find_experts(graph);
  if (layers.empty())
    throw ArgumentError("mesh: expert = {}: graph '{}' has no experts to shard (expected matmuls with weights of every "
                        "expert, or one branch of operators per expert)", ranks, graph.name());
  for (const auto& layer : layers)
    if (layer.experts % ranks != 0)
      throw ArgumentError("mesh: expert = {} does not divide the {} experts of '{}' (nearest that do: {})", ranks,
                          layer.experts, layer.name, divisors_near(layer.experts, ranks));
  return Spreading(graph, std::move(layers), ranks).run();
}

TokenRouting routing_of(const Operator& op) {
  const auto number = [&](const char* name, int64_t otherwise) {
    return std::max<int64_t>(otherwise, integer_attribute(op.attributes, name, otherwise));
  };
  TokenRouting routing{number("experts", 0), number("experts_per_token", 0), number("expert_groups", 1),
                       number("group_topk", 1)};
  if (std::max({routing.per_token, routing.groups, routing.group_topk}) > TokenRouting::kMost) return {};
  routing.per_token = std::min(routing.per_token, routing.experts);
  routing.group_topk = std::min(routing.group_topk, routing.groups);
  return routing;
}

TokenRouting routing_of(const Graph& graph, const Collective& collective) {
  return collective.kind == CollectiveKind::all_to_all ? routing_of(graph.op(collective.members[0])) : TokenRouting{};
}

bool is_exchange(const Operator& op) { return op.type == "AllToAll" || op.type == "AllToAllGrad"; }

}  // namespace trinity
