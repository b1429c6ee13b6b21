#pragma once

#include <list>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/index.h"
#include "graph/operator_spaces.h"
#include "strategy/blocks.h"
#include "strategy/splits.h"

namespace trinity {

/// The device of a block of a tensor.
struct Home {
  Block block;
  int32_t device = 0;
  int32_t part = 0;  ///< of the tensor's producer
};

/// The blocks of a tensor that the parts of an operator read or write: by part, or one block if all
/// parts have the same. Immutable.
class Blocks {
 public:
  explicit Blocks(std::vector<Block> list) : list_(std::move(list)) {}
  const Block& of(int32_t part) const {
    return list_.size() == 1 ? list_[0] : list_[static_cast<size_t>(part)];
  }
  /// True if parts have different blocks.
  bool pieces() const { return list_.size() > 1; }
  bool operator==(const Blocks&) const = default;

 private:
  std::vector<Block> list_;
};

/// The decisions of lower_splits() before it builds: for every operator its cut, the dimensions
/// that its tensors carry and the device of every part; for every tensor the devices of its blocks.
/// Layers repeat lists of blocks, devices and homes: each is stored once, so that equal lists have
/// equal addresses. Used once, by one thread.
class SplitLayout {
 public:
  /// The arguments of lower_splits(), checked.
  SplitLayout(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
              int32_t devices, const SplitOptions& options);

  /// The operator whose split `op` follows: its forward operator, or itself.
  int32_t leader(int32_t op) const { return leader_[op]; }
  const OperatorCut& cut(int32_t op) const { return cuts_[cut_of_[op]]; }
  const std::vector<int32_t>& devices(int32_t op) const { return *devices_of_[cut_of_[op]]; }
  int32_t device(int32_t op, int32_t part) const { return devices(op)[at(part)]; }
  /// True if an operator is copied to every device that reads its output: a source that some split
  /// operator reads.
  bool is_source(int32_t op) const { return source_[op]; }
  /// Blocks of a tensor, by part; for the output of a source: one for every device that reads it.
  const std::vector<Home>& homes(int32_t tensor) const { return *homes_[tensor]; }

  /// True if a part needs that block of an input which the producer's part of its number wrote.
  bool reads_own_part(int32_t op, size_t input) const;
  /// The blocks of its k-th input that parts need.
  const Blocks& reads(int32_t op, size_t input) const { return *views_[op].reads[input]; }
  const Block& needed(int32_t op, size_t input, int32_t part) const {
    return reads(op, input).of(part);
  }
  const Block& written(int32_t op, size_t output, int32_t part) const {
    return views_[op].writes[output]->of(part);
  }
  const TensorAxes& output_axes(int32_t op, size_t output) const {
    return *views_[op].outputs[output];
  }
  /// True if output `output` of a backward operator is the gradient of its weights.
  bool is_weight_gradient(int32_t op, size_t output) const {
    return views_[op].weight_gradient == static_cast<int32_t>(output);
  }
  /// Split dimensions along which parts hold partial sums of an output.
  std::vector<int32_t> summed(int32_t op, size_t output) const;
  /// True if they are reduced after the gradient accumulation that is the only reader of the
  /// output.
  bool sums_later(int32_t op, size_t output) const;
  /// True if the parts of a gradient accumulation hold partial sums, as its terms do: it runs on
  /// the devices of its terms.
  bool adds_parts(int32_t op) const { return partial_[op]; }
  /// True if the sum of an output's parts is left scattered over them: every device needs a piece.
  bool scatters(int32_t op, size_t output) const {
    return scattered_[graph_.op(op).outputs[output]];
  }
  /// The dimension of its copies.
  std::vector<int32_t> copies_of(int32_t op) const;
  bool reads_window(int32_t op) const;
  /// The part of the bytes of its leader's weights that a part owns.
  double weight_share(int32_t op, int32_t part) const;

 private:
  /// The dimensions that the tensors of an operator carry: axes of its leader's space, or blank
  /// ones.
  struct View {
    ShortList<const TensorAxes*, 4> inputs, outputs;
    std::vector<bool> window;  ///< per input: read through a moving window; empty: none is
    int32_t weight_gradient = -1;
    ShortList<const Blocks*, 4> reads = {}, writes = {};  ///< by input, by output

    bool reads_window(size_t input) const { return !window.empty() && window[input]; }
  };

  /// By device.
  using Terms = std::map<int32_t, std::pair<Block, std::vector<int32_t>>>;
  static bool equal(const Terms& a, const Terms& b) { return &a == &b || a == b; }
  const Terms& terms(int32_t op, const std::vector<int32_t>& dimensions, size_t output);
  const Terms& partial_terms(int32_t tensor);
  bool passes_sums(int32_t op) const;
  bool same_homes(int32_t a, int32_t b) const;
  void add_where_partial(int32_t sum);
  bool cut_as(int32_t sum, const Terms& given, const IterationSpace& space, size_t d);
  void add_at_terms(int32_t sum);
  void add_in_pieces(int32_t sum);
  void scatter(int32_t op, size_t output);
  std::map<int32_t, const Block*> wanted_blocks(int32_t tensor) const;
  void find_leaders(const Splits& splits, bool sources_at_readers);
  View forward_view(int32_t op) const;
  View backward_view(int32_t op);
  const TensorAxes& weight_axes(const Operator& forward);
  /// `count` axes that are never cut.
  const TensorAxes& blank(size_t count) { return blank_.try_emplace(count, count).first->second; }
  /// A device for a part: its index in a list of devices, and the bytes of inputs that it holds.
  struct Choice {
    int32_t part;
    size_t place;
    double bytes;
  };
  Choice choose(int32_t op, int32_t part, const std::vector<int32_t>& open,
                const std::vector<bool>& taken, int32_t devices) const;
  void assign(int32_t op, const OperatorSplit& split, std::span<const int32_t> placement,
              int32_t devices);
  std::vector<double> local_bytes(int32_t op, int32_t part, int32_t devices) const;
  void find_blocks(int32_t op);
  const Blocks* blocks_of(const OperatorCut& cut, int32_t tensor, const TensorAxes& axes);
  const Blocks* one_of(std::vector<Block> list);
  const std::vector<int32_t>* one_of(std::vector<int32_t> devices);
  const std::vector<Home>* homes_in(const Blocks* blocks, int32_t op, int32_t tensor);
  void settle_outputs(int32_t op);
  void demand_sources(int32_t op);
  void widen(const Operator& forward, int32_t op, int32_t part, Block& block) const;

  const Graph& graph_;
  OperatorSpaces spaces_;  // whose axes views point to
  std::map<size_t, TensorAxes> blank_;
  std::vector<int32_t> leader_;
  std::vector<int32_t> cut_of_;  // the operator whose cut it has: its leader, or itself
  std::vector<bool> source_, partial_;
  std::vector<OperatorCut> cuts_;                 // by cut_of_
  std::vector<const std::vector<int32_t>*> devices_of_;  // by cut_of_, by part
  std::vector<View> views_;
  std::vector<const std::vector<Home>*> homes_;  // by tensor
  struct CutBlocks {
    std::vector<int32_t> factors;
    std::vector<int64_t> shape;
    const Blocks* blocks;
  };
  std::map<const TensorAxes*, std::vector<CutBlocks>> blocks_of_;
  std::list<Blocks> blocks_;                     // each once
  std::set<std::vector<int32_t>> devices_;       // the same
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
  bool padded_;
};

}  // namespace trinity
