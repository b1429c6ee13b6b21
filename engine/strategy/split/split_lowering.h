#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/collective.h"
#include "base/index.h"
#include "base/stop.h"
#include "graph/graph.h"
#include "graph/meaning.h"
#include "strategy/split_layout.h"
#include "strategy/splits.h"

// Internal to strategy/splits: shared by splits.cpp (parts and their sums), split_ring.cpp
// (attention in rings), split_gathers.cpp (inputs of parts) and split_exchanges.cpp (all-to-alls).

namespace trinity {

/// Lists of numbers, each filled with -1 when its length is known; one array holds them all.
/// Not thread-safe.
class NumberLists {
 public:
  explicit NumberLists(size_t lists) : place_(lists) {}
  void add(int32_t list, size_t size) {
    place_[at(list)] = {numbers_.size(), size};
    numbers_.resize(numbers_.size() + size, -1);
  }
  /// Valid until the next add().
  std::span<int32_t> operator[](int32_t list) {
    return std::span(numbers_).subspan(place_[at(list)].first, place_[at(list)].second);
  }
  std::span<const int32_t> operator[](int32_t list) const {
    return std::span(numbers_).subspan(place_[at(list)].first, place_[at(list)].second);
  }
  void reserve(size_t numbers) { numbers_.reserve(numbers); }

 private:
  std::vector<int32_t> numbers_;
  std::vector<std::pair<size_t, size_t>> place_;  // [list]: its first number, its length
};

/// Builds the lowered graph from a layout. Used once, by one thread.
class SplitLowering {
 public:
  /// Thrown if pipeline groups that are not made could differ from the others of their class.
  struct LanesDiffer {};

  /// width: 0, or the width of lower_lanes(), which throws LanesDiffer.
  SplitLowering(const Graph& graph, const SplitLayout& layout, const SplitOptions& options,
                int32_t width = 0)
      : graph_(graph),
        layout_(layout),
        width_(width),
        bucket_bytes_(options.bucket_bytes),
        apart_(options.apart),
        runs_(options.runs),
        across_first_(options.across_first),
        exchanges_(options.exchanges),
        run_(options.width),
        tensor_(options.tensor),
        meaning_(has_meaning(graph)),
        builder_(graph.name()),
        parts_of_(at(graph.operator_count())),
        held_(graph.tensors().size()) {}

  Lowered run();

 private:
  using Where = std::vector<std::pair<int32_t, int32_t>>;  // by part: group, device
  /// A partial gradient of a weight before its reduction: an operator's output.
  struct Gradient {
    int32_t op;
    size_t output;
    std::vector<int32_t> parts;  // by part of its bucket; empty: of the same numbers
    Where next = {};             // the second reduction, if groups are first: by its own part
    int32_t part_at(size_t place) const {
      return parts.empty() ? static_cast<int32_t>(place) : parts[place];
    }
  };
  /// Partial gradients of weights that are reduced together, on the same groups of devices.
  struct Bucket {
    std::vector<Gradient> gradients;
    Where where;  // of the first one's parts
    int64_t bytes = 0;
    int32_t apart = 0;
    Where next = {};  // the second reduction
  };

  void add_whole(int32_t op);

  /// True if the operators of a device are built.
  bool makes(int32_t device) const {
    return width_ == 0 || lanes_[at(device % width_)] == device % width_;
  }
  bool makes_part(int32_t op, size_t part) const {
    return makes(layout_.device(op, static_cast<int32_t>(part)));
  }
  /// Allocates the parts of an operator and of its outputs; none is made yet (-1).
  void start_parts(int32_t op, size_t parts);
  /// Checks that a part was made: -1 cannot be used.
  int32_t made(int32_t number) const {
    if (number < 0) throw LanesDiffer{};
    return number;
  }
  // split_lanes.cpp:
  using Extents = std::vector<std::vector<int64_t>>;  // by pipeline group
  void find_lanes();
  void find_parts(int32_t op);
  void add_source_extents(int32_t op, Extents& extents) const;
  void add_ring_places(int32_t op, Extents& extents) const;
  void check_reads(int32_t op);
  /// True if no pipeline group holds the tensor that it reads as an input.
  bool reads_of_others(int32_t op, size_t input) const;
  void check_pieces(int32_t op, size_t input) const;
  void check_shared(int32_t op, size_t input);
  void check_ring(int32_t op) const;
  /// The axes over which collectives join parts, as bits; -1: others, or no mesh.
  int32_t axes_of(const Where& where) const;
  /// Checks that a device has a pipeline group's own part.
  void check_own(const Home& home, int32_t device) const {
    if (width_ > 0 && home.device % width_ != device % width_) throw LanesDiffer{};
  }

  int32_t add(Operator op, int32_t device, int32_t origin, int32_t part);
  /// Adds an operator that is no part of another one, but made for it.
  int32_t add_for(int32_t serves, Operator op, int32_t device, int32_t part);
  static std::string part_name(const std::string& name, int32_t part, size_t parts);

  /// A tensor's block: the extents of its shape, or its share of the bytes where it has no shape.
  int32_t add_block(int32_t producer, int32_t original, const Block& block, size_t parts,
                    const std::string& suffix, double share = 1);

  void add_source(int32_t op);

  void add_parts(int32_t op);

  /// For every part of an attention in a ring the part before it; empty if it is not in a ring.
  std::vector<int32_t> ring_of(int32_t op) const;
  int32_t ring_length(int32_t op) const;

  /// An operator of a ring on the device of a part, with an output of the given bytes.
  int32_t add_to_ring(int32_t op, const char* what, int32_t step, int32_t part, Operator made,
                      const TensorNumbers& inputs, std::vector<Tensor> outputs);
  /// A tensor with the shape and dtype of another.
  Tensor like(int32_t other) const;
  /// Keys concatenated with values.
  Tensor side_by_side(int32_t keys, int32_t values) const;
  /// The accumulators of an attention's part over the steps of a ring: weighted values, as large as
  /// its result, and of every row of scores the maximum and the sum of exponentials.
  std::vector<Tensor> sums_of(int32_t op, int32_t part) const;
  static Operator carrier(const char* type, double traffic_bytes);

  /// [step][part]: the part whose keys and values a part has in a step of a ring.
  static std::vector<std::vector<int32_t>> owners(const std::vector<int32_t>& ring, int32_t steps);
  /// Keys and values of a part in one tensor, after all of its inputs have arrived.
  int32_t pack(int32_t op, int32_t part, const TensorNumbers& inputs);

  /// [step][part]: the keys and values that a part has in a step of the ring.
  std::vector<std::vector<int32_t>> pass_round(int32_t op, const std::vector<int32_t>& ring,
                                               const std::vector<TensorNumbers>& inputs);
  /// Index of the keys among the inputs of an attention or its gradient; the values follow.
  int32_t keys_of(int32_t op) const;

  /// The work of an attention's part in one step of a ring (graph/meaning.h: first, next or last)
  /// with the keys and values of another part.
  Operator step_of(int32_t op, int32_t part, const char* step, int32_t owner) const;

  /// The inputs of an operator's parts, by part. Input by input, so that operators made for them
  /// are in one order on all devices.
  std::vector<TensorNumbers> fetched(int32_t op);

  void finish_part(int32_t op, int32_t part, int32_t owner, TensorNumbers inputs);

  /// Ring attention: every part sees its own keys and values, then the keys and values of the part
  /// before it, of the one before that, and so on, accumulating (online softmax). Each step needs
  /// only tensors that have arrived by then, so that the next transfer overlaps with it.
  void attend(int32_t op, const std::vector<int32_t>& ring);

  /// Its gradient: keys and values are sent round again, followed by the sums of their gradients,
  /// which end where these belong.
  void attend_back(int32_t op, const std::vector<int32_t>& ring);

  Operator part_of(int32_t op, int32_t part) const;

  /// The work of a gradient accumulation is proportional to its block; other operators divide the
  /// whole.
  double work_share(int32_t op, int32_t part) const;

  /// Memory traffic by the rules that made the original's, from the blocks that a part touches;
  /// where those do not give the original's, its share stays.
  void restate_traffic(int32_t op, int32_t part, Operator& made) const;

  /// Reduces partial sums; parts along a coupled dimension exchange their statistics.
  void join_parts(int32_t op, size_t output);

  std::vector<int32_t> coupled_dimensions(int32_t op) const;
  /// Rows of a part: a softmax has a sum and a maximum of each, a norm a mean and a variance.
  int64_t rows(int32_t op, int32_t part) const;

  /// All-reduces of an output between parts that differ along `dimensions` alone, or the
  /// reduce-scatters that the layout has found.
  template <class Bytes>
  void join(int32_t op, size_t output, const std::vector<int32_t>& dimensions,
            const std::string& what, const std::string& reduction, Bytes bytes);

  /// A member of a collective next to a part of an operator.
  int32_t add_member(int32_t op, std::string name, CollectiveKind kind, Phase phase, int32_t part);

  void fill_bucket(int32_t op, size_t output, const std::vector<int32_t>& dimensions);
  /// The groups in which the parts of a weight's gradient are reduced: all together, or within
  /// inner groups and across them. `within` is empty unless both are needed, `across` if inner
  /// groups do not differ.
  struct Reduction {
    Where where, within, across;
  };
  /// group: [part]: parts with one number are reduced together; devices: [part].
  Reduction find_reduction(const std::vector<int32_t>& group, const std::vector<int32_t>& devices) const;
  /// Reductions of an output by `where`, and of their results by `next`, if that is not empty.
  void put_in_bucket(Gradient gradient, const Where& where, const Where& next);
  static std::vector<int32_t> places_among(const Where& where, const Where& other);
  void reduce_buckets();
  void reduce_across_first();

  void reduce(size_t k);

  /// The tensor from which a part reads its block of an input.
  int32_t fetch(int32_t op, size_t input, int32_t part);

  /// The readers that share a gather of a tensor: the readers of one pass, for rows of experts of
  /// both passes.
  Phase gather_phase(int32_t op, int32_t tensor) const;

  /// The pieces of a block, by the groups of devices that hold all of them: the k-th copies of each
  /// (numbers of homes). None where these differ in number or do not make up the block.
  std::vector<std::vector<size_t>> holders(int32_t tensor, const Block& block) const;

  /// All-gathers of a block, if every device that holds a piece of it reads it with this
  /// operator, or an equal number of others does (the next stage's), which get a piece each first;
  /// false if some do not.
  bool gather(int32_t op, size_t input, const Block& block);
  /// The groups for which that holds, and the parts that read, by the device that holds their
  /// piece.
  struct Gathering {
    std::vector<std::vector<size_t>> groups;
    std::map<int32_t, int32_t> taking;
  };
  /// block: one of those that parts read.
  const std::optional<Gathering>& gathering(int32_t op, size_t input, const Block& block);
  std::optional<Gathering> find_gathering(int32_t op, size_t input, const Block& block) const;
  int32_t gather_axes(int32_t op, size_t input);

  /// An all-to-all of a tensor's pieces, if the devices that hold the pieces of a block read equal
  /// parts of all of them; otherwise false. Forward all-to-alls serve backward readers.
  bool exchange(int32_t op, size_t input, const Block& block);
  void add_exchange(int32_t op, size_t input, const std::vector<size_t>& group,
                    const std::vector<int32_t>& parts);
  int32_t exchange_axes(int32_t op, size_t input);
  /// The pieces of those devices in the order of the sequence, and the reader on each; none if an
  /// all-to-all is not possible.
  std::vector<size_t> exchanged_homes(int32_t op, size_t input, const Block& block,
                                      std::vector<int32_t>& parts) const;

  /// The tensor that the gather of a forward tensor for a backward operator waits for, so that it
  /// is gathered no earlier than it is used: the first gradient that the operator reads; -1:
  /// nothing.
  int32_t gradient_for(int32_t op, int32_t tensor, int32_t part);

  /// taking: as in Gathering.
  void add_gather(int32_t op, int32_t tensor, const std::vector<size_t>& group, const Block& block,
                  const std::map<int32_t, int32_t>& taking, int32_t axes);

  /// The home with exactly this block: on the device if there is one, else at the same position of
  /// another run; otherwise devices choose round-robin.
  size_t holder(const std::vector<Home>& homes, int32_t device, const Block& block) const;

  /// Pieces of homes that cover the block, joined on the device if there are several.
  int32_t collect(int32_t op, int32_t tensor, int32_t device, const Block& block);

  int32_t slice(int32_t tensor, size_t home, const Block& piece);

  const std::string& producer_name(int32_t tensor) const;

  /// Parts with one number share a colocation unit if they share a device.
  void colocate(std::span<const int32_t> unit);

  Lowered finish();

  const Graph& graph_;
  const SplitLayout& layout_;
  int32_t width_;
  std::vector<int32_t> lanes_;  // with a width: Lowered::lanes
  std::map<const std::vector<int32_t>*, std::vector<int32_t>> parts_on_;  // [devices of an operator][pipeline group]
  std::vector<const std::vector<int32_t>*> part_on_;      // [operator]: its list in parts_on_
  int32_t part_on(int32_t op, int32_t lane) const { return (*part_on_[at(op)])[at(lane)]; }
  /// The tensors that parts on some devices read of a tensor in some homes.
  using Read = std::tuple<const std::vector<Home>*, const Blocks*, const std::vector<int32_t>*>;
  Read read_of(int32_t op, size_t input) const {
    return {&layout_.homes(graph_.op(op).inputs[input]), &layout_.reads(op, input),
            &layout_.devices(op)};
  }
  std::map<Read, bool> checked_;  // check_reads(): results of reads_of_others()
  std::map<int32_t, std::vector<std::pair<int32_t, size_t>>> readers_;  // check_shared(), by tensor
  int64_t bucket_bytes_;
  std::span<const int32_t> apart_;
  int32_t runs_;
  bool across_first_;
  bool exchanges_;
  int32_t run_, tensor_;
  bool meaning_;  ///< whether attributes state the meaning of parts (graph/meaning.h)
  GraphBuilder builder_;
  StopPoll poll_;
  std::vector<Bucket> buckets_;
  NumberLists parts_of_;  // [operator][part]: operator of the builder
  NumberLists held_;      // [tensor][home]: tensor of the builder
  std::map<std::tuple<int32_t, int32_t, Block>, int32_t> joined_, sliced_, exchanged_;
  std::map<std::tuple<int32_t, int32_t, Block, Phase>, int32_t> gathered_;
  std::map<std::pair<Read, const Block*>, std::optional<Gathering>> gatherings_;
  std::map<Read, int32_t> gather_axes_;
  /// [devices of the parts, group of every part]
  std::map<std::pair<const std::vector<int32_t>*, std::vector<int32_t>>, Reduction> reductions_;
  std::vector<OperatorRole> roles_;  // per operator of the builder
  int64_t joins_ = 0;
  std::map<std::string, int32_t> gathers_;  // by name
};

}  // namespace trinity
