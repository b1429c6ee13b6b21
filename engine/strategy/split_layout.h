#pragma once

#include <algorithm>
#include <cstdlib>
#include <list>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "strategy/split_views.h"

namespace trinity {

/// The device of a block of a tensor.
struct Home {
  Block block;
  int32_t device = 0;
  int32_t part = 0;  ///< of the tensor's producer
};

/// The decisions of lower_splits() before it builds: the views of operators, the device of every part and, for every
/// tensor, the devices of its blocks. Layers repeat lists of blocks, devices and homes: each is stored once, so that
/// equal lists have equal addresses. Used once, by one thread.
class SplitLayout : public SplitViews {
 public:
  /// The arguments of lower_splits(), checked.
  SplitLayout(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
              int32_t devices, const SplitOptions& options)
      : SplitViews(graph, splits, options),
        partial_(at(graph.operator_count()), false),
        devices_of_(at(graph.operator_count())),
        homes_(graph.tensors().size(), &kNowhere),
        scattered_(graph.tensors().size(), false) {
    StopPoll poll;
    const OperatorSplit whole;
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      poll.step();
      const OperatorSplit& split = splits.empty() ? whole : splits[op];
      view(op, split);
      if (is_source(op)) continue;
      if (leader(op) == op)
        assign(op, split, placement, devices);
      else if (passes_sums(op))
        add_where_partial(op);
      if (options.of_mesh() && is_sum(graph.op(op))) add_at_terms(op);
      settle_outputs(op);
      demand_sources(op);
    }
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      if (!is_source(op)) continue;
      devices_of_[op] = one_of(std::vector{placement[op]});
      for (const int32_t output : graph.op(op).outputs) {
        auto& homes = source_homes_[output];
        homes_[output] = &homes;
        if (homes.empty())
          homes.push_back({whole_block(graph.tensor(output).shape), placement[op], 0});
      }
    }
    for (int32_t op = 0; op < graph.operator_count(); ++op)
      for (size_t o = 0; o < graph.op(op).outputs.size() && cut(op).parts() > 1; ++o) scatter(op, o);
  }

  const std::vector<int32_t>& devices(int32_t op) const { return *devices_of_[cut_of_[op]]; }
  int32_t device(int32_t op, int32_t part) const { return devices(op)[at(part)]; }
  /// Blocks of a tensor, by part; for the output of a source: one for every device that reads it.
  const std::vector<Home>& homes(int32_t tensor) const { return *homes_[tensor]; }

  /// True if a part needs that block of an input which the producer's part of its number wrote.
  bool reads_own_part(int32_t op, size_t input) const {
    const int32_t tensor = graph_.op(op).inputs[input], from = graph_.tensor(tensor).producer;
    if (is_source(from) || scattered_[tensor] || views_[op].reads_window(input)) return false;
    const auto output = at(tensor - graph_.op(from).outputs.front());
    return cut(op).same_blocks(*views_[op].inputs[input], cut(from), output_axes(from, output));
  }

  /// Split dimensions along which parts hold partial sums of an output.
  /// Parts of a gradient accumulation or an update that write the same block do the same work.
  std::vector<int32_t> summed(int32_t op, size_t output) const {
    const auto& of = graph_.op(op);
    if (is_sum(of) || of.phase == Phase::update || of.type == "SoftmaxCrossEntropyLoss") return {};
    return cut(op).missing(output_axes(op, output));
  }

  /// True if they are reduced after the gradient accumulation that is the only reader of the
  /// output.
  bool sums_later(int32_t op, size_t output) const {
    const auto readers = graph_.readers_of(graph_.op(op).outputs[output]);
    return std::ranges::distance(readers) == 1 && adds_parts(readers.front());
  }

  /// True if the parts of a gradient accumulation hold partial sums, as its terms do: it runs on
  /// the devices of its terms.
  bool adds_parts(int32_t op) const { return partial_[op]; }
  /// True if the sum of an output's parts is left scattered over them: every device needs a piece.
  bool scatters(int32_t op, size_t output) const {
    return scattered_[graph_.op(op).outputs[output]];
  }

  /// The part of the bytes of its leader's weights that a part owns.
  double weight_share(int32_t op, int32_t part) const {
    const auto& forward = graph_.op(leader(op));
    const auto& axes = cut(op).space().parameters;
    double whole = 0, own = 0;
    for (size_t i = 0; i < forward.parameters.size(); ++i) {
      const auto& shape = forward.parameters[i].shape;
      whole += static_cast<double>(forward.parameters[i].bytes());
      own += static_cast<double>(block_elements(cut(op).block(shape, axes[i], part)) *
                                 dtype_bytes(forward.parameters[i].dtype));
    }
    return whole > 0 ? own / whole : 1;
  }

 private:
  /// By device.
  using Terms = std::map<int32_t, std::pair<Block, std::vector<int32_t>>>;
  static bool equal(const Terms& a, const Terms& b) { return &a == &b || a == b; }

  /// The partial sums on every device: which block, and with which devices it is joined. (A
  /// variable's gradient has no shape: its block is the block of the tensor that it passes on.)
  const Terms& terms(int32_t op, const std::vector<int32_t>& dimensions, size_t output) {
    const bool handed_on = is_weight_gradient(op, output) && is_variable(graph_.op(leader(op)));
    const Blocks* blocks = handed_on ? views_[op].reads[0] : views_[op].writes[output];
    auto group = cut(op).groups(dimensions);
    const auto [known, fresh] = terms_.try_emplace({blocks, &devices(op), std::move(group)});
    if (!fresh) return known->second;
    std::map<int32_t, std::vector<int32_t>> members;
    const auto& groups = std::get<2>(known->first);
    for (int32_t part = 0; part < cut(op).parts(); ++part)
      members[groups[at(part)]].push_back(device(op, part));
    for (auto& [number, list] : members) std::sort(list.begin(), list.end());
    for (int32_t part = 0; part < cut(op).parts(); ++part)
      known->second[device(op, part)] = {block_of(*blocks, part), members[groups[at(part)]]};
    return known->second;
  }

  /// The same for a gradient; empty if its parts hold no partial sums.
  const Terms& partial_terms(int32_t tensor) {
    static const Terms kNone;
    const int32_t from = graph_.tensor(tensor).producer;
    const auto& outputs = graph_.op(from).outputs;
    const auto output = at(std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin());
    if (graph_.op(from).phase != Phase::backward || cut(from).parts() == 1) return kNone;
    const auto sums = partial_[from] ? copies_of(from) : summed(from, output);
    return sums.empty() ? kNone : terms(from, sums, output);
  }

  /// Sums of gradients, and operators that pass on gradients of a variable's readers.
  bool passes_sums(int32_t op) const {
    const auto& about = graph_.op(op);
    const bool variable = about.phase == Phase::backward && is_variable(graph_.op(leader(op)));
    return (is_sum(about) || variable) && !about.inputs.empty() && !about.outputs.empty();
  }

  bool same_homes(int32_t a, int32_t b) const {
    const auto equal = [](const Home& x, const Home& y) {
      return x.device == y.device && x.block == y.block;
    };
    const auto &x = homes(a), &y = homes(b);
    return &x == &y || std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
  }

  /// An accumulation of partial sums that have the same blocks on the same devices runs on these
  /// devices, before the partial sums are reduced: with its own cut if its copies are these, else
  /// with a cut along a single dimension.
  void add_where_partial(int32_t sum) {
    const auto& inputs = graph_.op(sum).inputs;
    const Terms& given = partial_terms(inputs[0]);
    if (given.empty()) return;
    for (const int32_t input : inputs)
      if (!equal(partial_terms(input), given)) return;
    if (cut(sum).factors().back() > 1 && equal(terms(sum, copies_of(sum), 0), given)) {
      partial_[sum] = true;
      return;
    }
    const IterationSpace space = cut(sum).space();
    for (size_t d = 0; d < space.dimensions.size() && !partial_[sum]; ++d)
      partial_[sum] = cut_as(sum, given, space, d);
  }

  /// Cuts an accumulation along one dimension, with one copy per device that holds terms of a block;
  /// false, with its cut unchanged, if that gives other blocks.
  bool cut_as(int32_t sum, const Terms& given, const IterationSpace& space, size_t d) {
    std::map<Block, std::vector<int32_t>> holders;
    for (const auto& [device, term] : given) holders[term.first].push_back(device);
    const size_t copies = holders.begin()->second.size();
    std::vector<int32_t> factors(space.dimensions.size(), 1), devices;
    factors[d] = static_cast<int32_t>(holders.size());
    const OperatorCut tried(space, factors, static_cast<int32_t>(copies), padded_);
    const auto& shape = graph_.tensor(graph_.op(sum).outputs[0]).shape;
    for (int32_t part = 0; part < tried.parts(); ++part) {
      const auto held = holders.find(tried.block(shape, output_axes(sum, 0), part));
      if (held == holders.end() || held->second.size() != copies) return false;
      devices.push_back(held->second[at(part) % copies]);
    }
    const int32_t before = cut_of_[sum];
    cuts_[sum] = tried;
    devices_of_[sum] = one_of(std::move(devices));
    cut_of_[sum] = sum;
    find_blocks(sum);
    if (equal(terms(sum, copies_of(sum), 0), given)) return true;
    cut_of_[sum] = before;
    find_blocks(sum);
    return false;
  }

  /// An accumulation whose terms have the same blocks on the same devices, other than its own, runs
  /// on these devices: one tensor is sent instead of all terms.
  void add_at_terms(int32_t sum) {
    const auto& inputs = graph_.op(sum).inputs;
    if (partial_[sum] || inputs.empty()) return;
    const auto& homes = this->homes(inputs[0]);
    for (const int32_t input : inputs)
      if (!partial_terms(input).empty() || !same_homes(inputs[0], input)) return;
    if (homes.size() != at(cut(sum).parts())) return;
    std::vector<int32_t> devices;
    for (size_t part = 0; part < homes.size(); ++part) {
      if (homes[part].block != written(sum, 0, static_cast<int32_t>(part)))
        return add_in_pieces(sum);
      devices.push_back(homes[part].device);
    }
    if (devices == this->devices(sum)) return;
    cuts_[sum] = cut(sum);
    devices_of_[sum] = one_of(std::move(devices));
    cut_of_[sum] = sum;
  }

  /// An accumulation whose terms are pieces, along one dimension, of the blocks that its parts write
  /// is computed on the pieces: a reader of the whole gathers one tensor instead of all terms.
  void add_in_pieces(int32_t sum) {
    const auto& homes = this->homes(graph_.op(sum).inputs[0]);
    Terms given;
    for (const auto& home : homes) given[home.device] = {home.block, {home.device}};
    if (given.size() != homes.size()) return;
    const IterationSpace space = cut(sum).space();
    for (size_t d = 0; d < space.dimensions.size(); ++d)
      if (cut_as(sum, given, space, d)) return;
  }

  /// A reduction of which every device reads another piece, and no device anything else.
  void scatter(int32_t op, size_t output) {
    const int32_t tensor = graph_.op(op).outputs[output];
    if (graph_.tensor(tensor).shape.empty() || is_weight_gradient(op, output)) return;
    if (sums_later(op, output)) return;
    const auto sums = adds_parts(op) ? copies_of(op) : summed(op, output);
    if (sums.empty()) return;
    const auto wanted = wanted_blocks(tensor);
    const auto group = cut(op).groups(sums);
    std::map<int32_t, int64_t> pieces;  // elements that the devices of a group read, by group
    for (int32_t part = 0; part < cut(op).parts(); ++part) {
      const auto found = wanted.find(device(op, part));
      const Block& whole = written(op, output, part);
      if (found == wanted.end() || !found->second || found->second->empty()) return;
      const Block& piece = *found->second;
      if (!lies_in(piece, whole) || piece == whole) return;
      pieces[group[part]] += block_elements(piece);
    }
    if (wanted.size() != at(cut(op).parts())) return;  // other operators read it, too
    for (int32_t part = 0; part < cut(op).parts(); ++part)
      if (pieces[group[part]] != block_elements(written(op, output, part))) return;
    scattered_[tensor] = true;
    std::vector<Block> held;
    for (const int32_t device : devices(op)) held.push_back(*wanted.at(device));
    homes_[tensor] = homes_in(one_of(std::move(held)), op, tensor);
  }

  /// The block of a tensor that is read on every device; none if devices read different blocks.
  std::map<int32_t, const Block*> wanted_blocks(int32_t tensor) const {
    std::map<int32_t, const Block*> wanted;
    for (const int32_t reader : graph_.readers_of(tensor)) {
      const auto& inputs = graph_.op(reader).inputs;
      for (size_t k = 0; k < inputs.size(); ++k)
        for (int32_t part = 0; inputs[k] == tensor && part < cut(reader).parts(); ++part) {
          const Block& block = needed(reader, k, part);
          const auto [found, fresh] = wanted.emplace(device(reader, part), &block);
          if (!fresh && found->second && *found->second != block) found->second = nullptr;
        }
    }
    return wanted;
  }

  /// A device for a part: its index in a list of devices, and the bytes of inputs that it holds.
  struct Choice {
    int32_t part;
    size_t place;
    double bytes;
  };

  /// The free device of `open` that holds most of a part's inputs; ties: the nearest to the part's
  /// device if all parts were spread equally over these devices.
  Choice choose(int32_t op, int32_t part, const std::vector<int32_t>& open,
                const std::vector<bool>& taken, int32_t devices) const {
    const auto parts = static_cast<int64_t>(cuts_[op].parts());
    const int64_t even = part * static_cast<int64_t>(open.size()) / parts;
    const auto local = local_bytes(op, part, devices);
    const auto distance = [even](size_t i) { return std::abs(static_cast<int64_t>(i) - even); };
    Choice best{part, open.size(), 0};
    for (size_t i = 0; i < open.size(); ++i) {
      if (taken[i]) continue;
      const double bytes = local[open[i]];
      const bool better = best.place == open.size() || bytes > best.bytes ||
                          (bytes == best.bytes && distance(i) < distance(best.place));
      if (better) best = {part, i, bytes};
    }
    return best;
  }

  /// Parts choose the devices that hold most of their inputs, in order of the largest gain; the
  /// remaining parts then choose among the remaining devices. In part order alone, a part without
  /// inputs on any device could take the device that holds all inputs of the next part.
  void assign(int32_t op, const OperatorSplit& split, std::span<const int32_t> placement,
              int32_t devices) {
    const int32_t parts = cuts_[op].parts();
    std::vector<int32_t> open = split.devices;
    if (open.empty() && parts == 1) open = {placement[op]};
    if (open.empty()) {
      open.resize(at(devices));
      std::iota(open.begin(), open.end(), 0);
    }
    if (split.in_order || open.size() == 1) {
      if (!split.in_order) open.resize(at(parts), open[0]);
      devices_of_[op] = one_of(std::move(open));
      return;
    }
    std::vector<int32_t> chosen(at(parts), open[0]);
    std::vector<bool> taken(open.size(), false);
    std::vector<Choice> choices, left;
    for (int32_t part = 0; part < parts; ++part)
      choices.push_back(choose(op, part, open, taken, devices));
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& a, const Choice& b) { return a.bytes > b.bytes; });
    const auto take = [&](const Choice& choice) {
      taken[choice.place] = true;
      chosen[choice.part] = open[choice.place];
    };
    for (const auto& choice : choices) {
      if (choice.bytes > 0 && !taken[choice.place])
        take(choice);
      else
        left.push_back(choice);
    }
    for (const auto& choice : left) take(choose(op, choice.part, open, taken, devices));
    devices_of_[op] = one_of(std::move(chosen));
  }

  /// Bytes of a part's inputs by device.
  std::vector<double> local_bytes(int32_t op, int32_t part, int32_t devices) const {
    std::vector<double> bytes(at(devices), 0);
    std::vector<int64_t> most(at(devices));
    for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k) {
      const auto& tensor = graph_.tensor(graph_.op(op).inputs[k]);
      if (is_source(tensor.producer)) continue;
      const Block block = needed(op, k, part);
      std::fill(most.begin(), most.end(), 0);
      for (const auto& home : homes(graph_.op(op).inputs[k]))
        most[home.device] = std::max(most[home.device], shared_elements(block, home.block));
      const auto whole =
          std::max<double>(1, static_cast<double>(tensor.shape.empty() ? 1 : tensor.elements()));
      for (size_t d = 0; d < bytes.size(); ++d)
        bytes[d] += static_cast<double>(tensor.bytes) * static_cast<double>(most[d]) / whole;
    }
    return bytes;
  }

  using SplitViews::one_of;
  const std::vector<int32_t>* one_of(std::vector<int32_t> devices) {
    return &*devices_.insert(std::move(devices)).first;
  }

  /// The homes of a tensor of which the parts of an operator have these blocks.
  const std::vector<Home>* homes_in(const Blocks* blocks, int32_t op, int32_t tensor) {
    const auto& shape = graph_.tensor(tensor).shape.get();
    const auto& devices = this->devices(op);
    auto& known = housed_[{blocks, &devices}];
    for (const auto& one : known)
      if (one.shape == shape) return &one.homes;
    auto& made = known.emplace_back(Housed{shape, {}}).homes;
    for (int32_t part = 0; part < cut(op).parts(); ++part)
      made.push_back({block_of(*blocks, part), devices[at(part)], part});
    return &made;
  }

  void settle_outputs(int32_t op) {
    for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o) {
      const int32_t tensor = graph_.op(op).outputs[o];
      homes_[tensor] = homes_in(views_[op].writes[o], op, tensor);
    }
  }

  void demand_sources(int32_t op) {
    for (size_t k = 0; k < graph_.op(op).inputs.size(); ++k) {
      const int32_t tensor = graph_.op(op).inputs[k];
      if (!is_source(graph_.tensor(tensor).producer)) continue;
      auto& homes = source_homes_[tensor];
      homes_[tensor] = &homes;
      for (int32_t part = 0; part < cut(op).parts(); ++part) {
        const Home wanted{needed(op, k, part), device(op, part), static_cast<int32_t>(homes.size())};
        const bool there = std::any_of(homes.begin(), homes.end(), [&](const Home& home) {
          return home.device == wanted.device && home.block == wanted.block;
        });
        if (!there) homes.push_back(wanted);
      }
    }
  }

  std::vector<bool> partial_;
  std::vector<const std::vector<int32_t>*> devices_of_;  // by cut_of_, by part
  inline static const std::vector<Home> kNowhere;
  std::vector<const std::vector<Home>*> homes_;  // by tensor
  std::set<std::vector<int32_t>> devices_;       // each once
  struct Housed {
    std::vector<int64_t> shape;
    std::vector<Home> homes;
  };
  std::map<std::pair<const Blocks*, const std::vector<int32_t>*>, std::list<Housed>> housed_;
  std::map<int32_t, std::vector<Home>> source_homes_;  // by tensor
  /// By blocks, devices, and the group of every part.
  std::map<std::tuple<const Blocks*, const std::vector<int32_t>*, std::vector<int32_t>>, Terms>
      terms_;
  std::vector<bool> scattered_;  // by tensor
};

}  // namespace trinity
