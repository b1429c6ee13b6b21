#include "strategy/split_layout.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/index.h"
#include "base/stop.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

const std::vector<Home> kNowhere;

bool is_sum(const Operator& op) { return op.phase == Phase::backward && op.type == "Sum"; }

}  // namespace

SplitLayout::SplitLayout(const Graph& graph, const Splits& splits,
                         std::span<const int32_t> placement, int32_t devices,
                         const SplitOptions& options)
    : graph_(graph),
      spaces_(graph, true),
      partial_(at(graph.operator_count()), false),
      cuts_(at(graph.operator_count())),
      devices_of_(at(graph.operator_count())),
      homes_(graph.tensors().size(), &kNowhere),
      scattered_(graph.tensors().size(), false),
      padded_(options.padded) {
  find_leaders(splits, options.sources_at_readers);
  cut_of_ = leader_;
  views_.reserve(at(graph.operator_count()));
  StopPoll poll;
  const OperatorSplit whole;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    poll.step();
    const OperatorSplit& split = splits.empty() ? whole : splits[op];
    const bool leads = leader(op) == op;
    if (leads)
      cuts_[op] = OperatorCut(spaces_.of(op), split.factors, split.copies, padded_);
    views_.push_back(leads ? forward_view(op) : backward_view(op));
    find_blocks(op);
    if (source_[op]) continue;
    if (leads)
      assign(op, split, placement, devices);
    else if (passes_sums(op))
      add_where_partial(op);
    if (options.sum_at_terms && is_sum(graph.op(op))) add_at_terms(op);
    settle_outputs(op);
    demand_sources(op);
  }
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (!source_[op]) continue;
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

void SplitLayout::find_leaders(const Splits& splits, bool sources_at_readers) {
  for (int32_t id = 0; id < graph_.operator_count(); ++id) {
    const auto& op = graph_.op(id);
    const bool follows = op.phase != Phase::forward && op.forward >= 0;
    leader_.push_back(follows ? op.forward : id);
    source_.push_back(false);
    const bool split = !splits.empty() && splits[leader(id)].parts() > 1;
    if (!split && !sources_at_readers) continue;
    for (const int32_t input : op.inputs) {
      const auto& source = graph_.op(graph_.tensor(input).producer);
      if (source.type == "Input" || source.type == "Constant")
        source_[graph_.tensor(input).producer] =
            source.inputs.empty() && source.parameter_bytes() == 0 && source.outputs.size() == 1;
    }
  }
}

SplitLayout::View SplitLayout::forward_view(int32_t op) const {
  const auto& space = cuts_[op].space();
  View view;
  for (const auto& axes : space.inputs) view.inputs.push_back(&axes);
  for (const auto& axes : space.outputs) view.outputs.push_back(&axes);
  const auto& type = graph_.op(op).type;
  if (!view.inputs.empty() && (type == "Conv" || type.ends_with("Pool"))) {
    view.window.assign(view.inputs.size(), false);
    view.window[0] = true;
  }
  return view;
}

const TensorAxes& SplitLayout::weight_axes(const Operator& forward) {
  const auto& space = cut(static_cast<int32_t>(&forward - graph_.operators().data())).space();
  size_t largest = 0;
  for (size_t i = 1; i < forward.parameters.size(); ++i)
    if (forward.parameters[i].bytes() > forward.parameters[largest].bytes()) largest = i;
  return space.parameters.empty() ? blank(0) : space.parameters[largest];
}

/// The training lowering gives a backward operator the gradients of outputs, then forward tensors;
/// it writes the gradients of inputs in order, then the weights' gradient. Gradients are recognised
/// by their shapes, which equal their tensors'.
SplitLayout::View SplitLayout::backward_view(int32_t id) {
  const auto& op = graph_.op(id);
  const auto& forward = graph_.op(leader(id));
  const View& of = views_[leader(id)];
  View view;
  const auto shape = [&](int32_t tensor) -> const auto& { return graph_.tensor(tensor).shape; };
  size_t next_output = 0;
  for (const int32_t input : op.inputs) {
    const TensorAxes* axes = &blank(shape(input).size());
    bool window = false;
    for (size_t i = 0; i < forward.inputs.size(); ++i)
      if (forward.inputs[i] == input) axes = of.inputs[i], window = of.reads_window(i);
    for (size_t i = 0; i < forward.outputs.size(); ++i)
      if (forward.outputs[i] == input) axes = of.outputs[i];
    if (graph_.op(graph_.tensor(input).producer).phase != Phase::forward) {
      size_t i = is_sum(op) ? 0 : next_output;
      while (i < forward.outputs.size() && shape(forward.outputs[i]) != shape(input)) ++i;
      if (i < forward.outputs.size()) axes = of.outputs[i], next_output = i + 1;
    }
    if (window) view.window.resize(op.inputs.size(), false), view.window[view.inputs.size()] = true;
    view.inputs.push_back(axes);
  }
  size_t next_input = 0;
  for (size_t o = 0; o < op.outputs.size(); ++o) {
    const TensorAxes* axes = &blank(shape(op.outputs[o]).size());
    if (axes->empty() && forward.trainable_bytes() > 0 && o + 1 == op.outputs.size()) {
      view.weight_gradient = static_cast<int32_t>(o);
      axes = &weight_axes(forward);
    } else if (is_sum(op)) {
      axes = view.inputs.empty() ? axes : view.inputs[0];
    } else {
      size_t i = next_input;
      while (i < forward.inputs.size() && shape(forward.inputs[i]) != shape(op.outputs[o])) ++i;
      if (i < forward.inputs.size()) axes = of.inputs[i], next_input = i + 1;
    }
    view.outputs.push_back(axes);
  }
  return view;
}

/// Bytes of a part's inputs by device.
std::vector<double> SplitLayout::local_bytes(int32_t op, int32_t part, int32_t devices) const {
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

/// Parts choose the devices that hold most of their inputs, in order of the largest gain; the
/// remaining parts then choose among the remaining devices. In part order alone, a part without
/// inputs on any device could take the device that holds all inputs of the next part.
void SplitLayout::assign(int32_t op, const OperatorSplit& split, std::span<const int32_t> placement,
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

/// The free device of `open` that holds most of a part's inputs; ties: the nearest to the part's
/// device if all parts were spread equally over these devices.
SplitLayout::Choice SplitLayout::choose(int32_t op, int32_t part, const std::vector<int32_t>& open,
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

/// Finds the blocks that the parts of a split operator read and write.
void SplitLayout::find_blocks(int32_t op) {
  const auto &about = graph_.op(op), &forward = graph_.op(leader(op));
  const auto& cut = this->cut(op);
  auto& view = views_[op];
  view.reads.clear();
  view.writes.clear();
  for (size_t o = 0; o < about.outputs.size(); ++o)
    view.writes.push_back(blocks_of(cut, about.outputs[o], *view.outputs[o]));
  for (size_t k = 0; k < about.inputs.size(); ++k) {
    view.reads.push_back(blocks_of(cut, about.inputs[k], *view.inputs[k]));
    if (!view.reads_window(k) || cut.parts() == 1) continue;
    std::vector<Block> wide;
    for (int32_t part = 0; part < cut.parts(); ++part) {
      wide.push_back(view.reads[k]->of(part));
      widen(forward, op, part, wide.back());
    }
    view.reads[k] = one_of(std::move(wide));
  }
}

const Blocks* SplitLayout::blocks_of(const OperatorCut& cut, int32_t tensor,
                                     const TensorAxes& axes) {
  const auto& shape = graph_.tensor(tensor).shape.get();
  auto& known = blocks_of_[&axes];
  for (const auto& one : known)
    if (one.factors == cut.factors() && one.shape == shape) return one.blocks;
  std::vector<Block> list;
  for (int32_t part = 0; part < (cut.cuts(axes) ? cut.parts() : 1); ++part)
    list.push_back(cut.block(shape, axes, part));
  known.push_back({cut.factors(), shape, one_of(std::move(list))});
  return known.back().blocks;
}

const Blocks* SplitLayout::one_of(std::vector<Block> list) {
  Blocks made(std::move(list));
  const auto found = std::find(blocks_.begin(), blocks_.end(), made);
  return found != blocks_.end() ? &*found : &blocks_.emplace_back(std::move(made));
}

const std::vector<int32_t>* SplitLayout::one_of(std::vector<int32_t> devices) {
  return &*devices_.insert(std::move(devices)).first;
}

/// The homes of a tensor of which the parts of an operator have these blocks.
const std::vector<Home>* SplitLayout::homes_in(const Blocks* blocks, int32_t op, int32_t tensor) {
  const auto& shape = graph_.tensor(tensor).shape.get();
  const auto& devices = this->devices(op);
  auto& known = housed_[{blocks, &devices}];
  for (const auto& one : known)
    if (one.shape == shape) return &one.homes;
  auto& made = known.emplace_back(Housed{shape, {}}).homes;
  for (int32_t part = 0; part < cut(op).parts(); ++part)
    made.push_back({blocks->of(part), devices[at(part)], part});
  return &made;
}

void SplitLayout::settle_outputs(int32_t op) {
  for (size_t o = 0; o < graph_.op(op).outputs.size(); ++o) {
    const int32_t tensor = graph_.op(op).outputs[o];
    homes_[tensor] = homes_in(views_[op].writes[o], op, tensor);
  }
}

void SplitLayout::demand_sources(int32_t op) {
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

/// Adds the rows and columns that a window reaches beyond a block of its image.
void SplitLayout::widen(const Operator& forward, int32_t op, int32_t part, Block& block) const {
  const auto kernel = integers_attribute(forward, "kernel_shape");
  const auto strides = integers_attribute(forward, "strides");
  const auto pads = integers_attribute(forward, "pads");
  if (kernel.size() != 2 || block.size() != 4 || forward.outputs.empty()) return;
  const auto& image = graph_.tensor(forward.inputs[0]).shape;
  const Block out =
      cut(op).block(graph_.tensor(forward.outputs[0]).shape, *views_[leader(op)].outputs[0], part);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t stride = i < strides.size() ? strides[i] : 1, pad = i < pads.size() ? pads[i] : 0;
    auto& range = block[i + 2];
    if (range.length() == image[i + 2]) continue;
    range.begin = std::clamp<int64_t>(out[i + 2].begin * stride - pad, 0, image[i + 2] - 1);
    range.end = std::clamp<int64_t>((out[i + 2].end - 1) * stride - pad + kernel[i],
                                    range.begin + 1, image[i + 2]);
  }
}

bool SplitLayout::reads_own_part(int32_t op, size_t input) const {
  const int32_t tensor = graph_.op(op).inputs[input], from = graph_.tensor(tensor).producer;
  if (is_source(from) || scattered_[tensor] || views_[op].reads_window(input)) return false;
  const auto output = at(tensor - graph_.op(from).outputs.front());
  return cut(op).same_blocks(*views_[op].inputs[input], cut(from), output_axes(from, output));
}

/// Parts of a gradient accumulation or an update that write the same block do the same work.
std::vector<int32_t> SplitLayout::summed(int32_t op, size_t output) const {
  const auto& of = graph_.op(op);
  if (is_sum(of) || of.phase == Phase::update || of.type == "SoftmaxCrossEntropyLoss") return {};
  return cut(op).missing(output_axes(op, output));
}

/// The partial sums on every device: which block, and with which devices it is joined. (A
/// variable's gradient has no shape: its block is the block of the tensor that it passes on.)
const SplitLayout::Terms& SplitLayout::terms(int32_t op, const std::vector<int32_t>& dimensions,
                                             size_t output) {
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
    known->second[device(op, part)] = {blocks->of(part), members[groups[at(part)]]};
  return known->second;
}

/// The same for a gradient; empty if its parts hold no partial sums.
const SplitLayout::Terms& SplitLayout::partial_terms(int32_t tensor) {
  static const Terms kNone;
  const int32_t from = graph_.tensor(tensor).producer;
  const auto& outputs = graph_.op(from).outputs;
  const auto output = at(std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin());
  if (graph_.op(from).phase != Phase::backward || cut(from).parts() == 1) return kNone;
  const auto sums = partial_[from] ? copies_of(from) : summed(from, output);
  return sums.empty() ? kNone : terms(from, sums, output);
}

std::vector<int32_t> SplitLayout::copies_of(int32_t op) const {
  return {static_cast<int32_t>(cut(op).factors().size()) - 1};
}

/// Sums of gradients, and operators that pass on gradients of a variable's readers.
bool SplitLayout::passes_sums(int32_t op) const {
  const auto& about = graph_.op(op);
  const bool variable = about.phase == Phase::backward && is_variable(graph_.op(leader(op)));
  return (is_sum(about) || variable) && !about.inputs.empty() && !about.outputs.empty();
}

/// An accumulation of partial sums that have the same blocks on the same devices runs on these
/// devices, before the partial sums are reduced: with its own cut if its copies are these, else
/// with a cut along a single dimension.
void SplitLayout::add_where_partial(int32_t sum) {
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
bool SplitLayout::cut_as(int32_t sum, const Terms& given, const IterationSpace& space, size_t d) {
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

bool SplitLayout::same_homes(int32_t a, int32_t b) const {
  const auto equal = [](const Home& x, const Home& y) {
    return x.device == y.device && x.block == y.block;
  };
  const auto &x = homes(a), &y = homes(b);
  return &x == &y || std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
}

/// An accumulation whose terms have the same blocks on the same devices, other than its own, runs
/// on these devices: one tensor is sent instead of all terms.
void SplitLayout::add_at_terms(int32_t sum) {
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
void SplitLayout::add_in_pieces(int32_t sum) {
  const auto& homes = this->homes(graph_.op(sum).inputs[0]);
  Terms given;
  for (const auto& home : homes) given[home.device] = {home.block, {home.device}};
  if (given.size() != homes.size()) return;
  const IterationSpace space = cut(sum).space();
  for (size_t d = 0; d < space.dimensions.size(); ++d)
    if (cut_as(sum, given, space, d)) return;
}

/// The block of a tensor that is read on every device; none if devices read different blocks.
std::map<int32_t, const Block*> SplitLayout::wanted_blocks(int32_t tensor) const {
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

/// A reduction of which every device reads another piece, and no device anything else.
void SplitLayout::scatter(int32_t op, size_t output) {
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

bool SplitLayout::sums_later(int32_t op, size_t output) const {
  const auto readers = graph_.readers_of(graph_.op(op).outputs[output]);
  return std::ranges::distance(readers) == 1 && adds_parts(readers.front());
}

bool SplitLayout::reads_window(int32_t op) const {
  const auto& window = views_[op].window;
  return std::find(window.begin(), window.end(), true) != window.end();
}

double SplitLayout::weight_share(int32_t op, int32_t part) const {
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

}  // namespace trinity
