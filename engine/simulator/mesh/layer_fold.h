#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/mesh/lane_fold.h"
#include "simulator/mesh/layer_runs.h"
#include "simulator/order_graph.h"
#include "strategy/chunk_order.h"
#include "strategy/lanes.h"
#include "strategy/lower.h"
#include "strategy/mesh_schedule.h"
#include "strategy/pieces.h"
#include "strategy/quotient.h"

namespace trinity {

/// Size of the reduced model that represents a mesh. Usual case: two layers per virtual stage
/// (three if the first and last may differ) and three stages (first, inner, last), or enough stages
/// for three layers between the end layers. If an operator joins several layers of a virtual stage
/// (a gradient bucket), all layers of a virtual stage count as one. If it joins several virtual
/// stages of a device, all layers of a device count as one; five devices are then needed.
struct FoldSizes {
  int32_t layers = 0, few_layers = 0;      // over all stages
  std::vector<int32_t> few_stages;  // per reduced virtual stage: its number of network layers
  int32_t pipeline = 0, few_pipeline = 0;  // devices on the pipeline axis
  int32_t rounds = 1;                      // virtual stages per device
  int32_t ends = 1;                        // layers at each end that are not shared
  std::vector<int32_t> chunk_of;           // per layer: its virtual stage
  bool by_device = false;                  // a "layer" is a device with all its virtual stages
  bool joins = false;                      // an operator may join gradients of a device's layers
  int64_t bucket_bytes = 0;                // maximum size of such a bucket
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;

  int32_t chunks() const { return pipeline * rounds; }
  int32_t few_chunks() const { return few_pipeline * rounds; }
  /// Virtual stage of a device in a round, with `devices` devices.
  int32_t chunk_on(int32_t devices, int32_t round, int32_t device) const {
    return round * devices + device_of_chunk(schedule, devices, round * devices + device);
  }
  /// True if two virtual stages are on one device, with `devices` devices.
  bool one_device(int32_t devices, int32_t a, int32_t b) const {
    return a >= 0 && b >= 0 && a < devices * rounds && b < devices * rounds &&
           device_of_chunk(schedule, devices, a) == device_of_chunk(schedule, devices, b);
  }
  /// Virtual stage of the same device in the next round (step 1) or the previous one (-1); -1:
  /// none.
  int32_t joined(int32_t devices, int32_t chunk, int32_t step) const {
    const int32_t round = chunk / devices + step;
    if (round < 0 || round >= rounds) return -1;
    return chunk_on(devices, round, device_of_chunk(schedule, devices, chunk));
  }
  /// First layer of a virtual stage; few_first_layer(): of a reduced virtual stage.
  int32_t first_layer(int32_t chunk) const {
    if (by_device) return device_of_chunk(schedule, pipeline, chunk);
    return static_cast<int32_t>(std::find(chunk_of.begin(), chunk_of.end(), chunk) -
                                chunk_of.begin());
  }
  int32_t few_in_chunk() const { return by_device ? 1 : few_layers / few_chunks(); }
  int32_t few_first_layer(int32_t chunk) const {
    return by_device ? device_of_chunk(schedule, few_pipeline, chunk) : chunk * few_in_chunk();
  }
  /// Device that a reduced one represents; -1 for the inner one, which represents many.
  int32_t many_device(int32_t few) const {
    if (few_pipeline == pipeline || few == 0) return few;
    return few == few_pipeline - 1 ? pipeline - 1 : -1;
  }
  /// Reduced virtual stage that represents `chunk`.
  int32_t like(int32_t chunk) const {
    if (by_device) {
      const int32_t place = chunk % pipeline, behind = pipeline - few_pipeline;
      return chunk / pipeline * few_pipeline +
             (place < 2 ? place : place < pipeline - 2 ? 2 : place - behind);
    }
    if (few_chunks() == chunks() || chunk < 2) return chunk;
    return chunk == chunks() - 1 ? few_chunks() - 1 : std::min(2, few_chunks() - 2);
  }
  /// Virtual stage that a reduced one represents; -1 for inner ones, which represent many.
  int32_t many(int32_t few) const {
    if (by_device) {
      const int32_t place = few % few_pipeline, round = few / few_pipeline;
      if (place == 2) return -1;
      return round * pipeline + (place < 2 ? place : pipeline - few_pipeline + place);
    }
    const int32_t apart = few_chunks() < 5 ? 1 : 2;  // leaves one inner stage
    if (few_chunks() == chunks() || few < apart) return few;
    return few < few_chunks() - apart ? -1 : chunks() - few_chunks() + few;
  }
};

/// Sizes to try, fewest layers first. Empty if operators have choices of their own, a stage has no
/// layers, or no reduction is possible.
std::vector<FoldSizes> fold_sizes(const Parallelism& given, int32_t layers);
/// The mesh with fewer stages and the smallest number of micro-batches that every schedule accepts.
Parallelism with_few_stages(const Parallelism& given, const FoldSizes& sizes);

/// Replicas and devices of a mesh that run and represent all others.
struct FoldRuns {
  int32_t replicas = 1;
  // replica indices, if experts are sharded; empty: the first ones
  std::vector<int32_t> numbers = {};
  /// Per stage: device indices that run, ascending; empty: the first pipeline group of each class.
  std::vector<int32_t> parts = {};

  bool operator==(const FoldRuns&) const = default;
};

/// Expands the lowered graph of a reduced model (of its first replica, the first pipeline group of
/// each class) to the graph of a mesh with many equal layers. The lowered graph proves that layers
/// are equivalent: in every run of operators that each layer has, operators at the same index cost
/// the same and read the same indices of their own layer and of its neighbours. Inner layers, of
/// which there may be any number, are then repetitions of one (manual/symmetry.md). Operators and
/// collectives are numbered as if all layers had been lowered. Not thread-safe before expansion;
/// immutable afterwards.
class LayerFold {
 public:
  /// few: pipeline groups of the whole reduced replica; mesh: the reduced mesh; copies: the lowered
  /// replicas that run; problem: of their graph. Returns null if layers differ.
  static std::unique_ptr<LayerFold> make(const FoldSizes& sizes, const ReplicaLanes& few,
                                         const Mesh& mesh, const LoweredCopies& copies,
                                         const FoldRuns& runs, const Problem& problem);

  int32_t operators() const { return static_cast<int32_t>(like_.size()); }
  /// Must be called before graph(), group_of() and pieces(). Not thread-safe.
  void unfold();
  const OrderGraph& graph() const { return *graph_; }
  /// [operator]: device index in its replica.
  const std::vector<int32_t>& device() const { return device_; }
  /// Number of reduced operators that join outputs of several layers.
  int32_t joins() const { return static_cast<int32_t>(joins_.size()); }
  /// Number of replicas that run; replica of an operator.
  int32_t replicas() const { return replicas_; }
  int32_t replica(int32_t op) const {
    return slot_[static_cast<size_t>(like_[static_cast<size_t>(op)])] % replicas_;
  }
  /// True if the operators include those of this device.
  bool runs_on(int32_t device) const {
    return slot_of_part_[static_cast<size_t>(device % width_)] >= 0;
  }
  /// Pipeline groups of the full mesh.
  ReplicaLanes lanes(const Mesh& mesh) const { return lanes_->lanes(mesh); }
  /// [collective]: group index in lanes(); -1: a collective between replicas.
  int32_t group_of(int32_t collective) const { return group_of_[collective]; }
  LoweredCopies::Among among(int32_t collective) const {
    return copies_.among[static_cast<size_t>(collective_like_[static_cast<size_t>(collective)])];
  }
  /// As pipeline_pieces() of a schedule with the same stage places.
  OrderPieces pieces(PipelineSchedule schedule, int32_t micro_batches) const;

 private:
  static constexpr int32_t kSource = -2, kJoined = -3, kOutside = 1 << 29, kFixed = -(1 << 30);
  /// Layer offsets for weights gathered ahead: the last layer of the virtual stage that its device
  /// runs before the reader's, and the first layer of the one that it runs after.
  static constexpr int32_t kBefore = 1 << 30, kBehind = kBefore + 1;
  /// An input of an operator. zone, place and `offset` name an operator of a layer that many layers
  /// on. Zone -1: an operator outside layers (place: its index). Zone kSource: a source on the same
  /// device (place: which). Zone kJoined: a join of the device (place: which), its output for the
  /// reader's layer or, with offset kOutside, for no layer.
  struct Read {
    int32_t zone, place, offset, output;
    bool operator==(const Read&) const = default;
  };
  /// An input in the expanded graph: offset from begins_ of the reader's layer, starting at
  /// `begins`; or absolute (kFixed).
  struct Found {
    int32_t first, begins;
  };
  /// An operator of a device that joins outputs of its layers: a bucket of gradients or of weights.
  /// Its inputs are those of one layer, repeated for all; an output belongs to each layer, or there
  /// is none.
  struct Join {
    /// Inputs from the layers of one virtual stage, or one from outside (chunk -1).
    struct Part {
      int32_t input, chunk, layers;
      bool up;
    };
    int32_t op, device, which, slot;
    int32_t inputs = 0;
    std::vector<Part> parts = {};
    std::vector<Read> each = {};        // inputs per layer
    std::vector<int32_t> behind = {};   // virtual stages whose last gradient it waits for
    // Sizes of its inputs, and of the same before sharding:
    int64_t bytes = 0, layer_bytes = 0, whole_bytes = 0, layer_whole_bytes = 0;
    bool adds = false;             // its collective has the bytes of its inputs
    int64_t shares = 0;            // or one of this many shards; 0: neither
  };
  /// Items of a list whose zones are interrupted by joins: a join (zone -1), or runs of a zone for
  /// the layers between two virtual stages.
  struct Piece {
    int32_t begin, end, zone, chunk, last_chunk;
    int32_t device;  // device of a join; -1 for an inner one, which represents many
    bool between, devices_up;  // belongs to an inner device; direction in which those ascend
  };
  /// A join of the full mesh, or runs of a zone for these layers.
  struct Unfolded {
    int32_t item, device, zone, first, end;
  };
  enum Work : uint8_t { kForward, kBackward, kInput, kWeight, kUpdate, kMember };
  static constexpr size_t kWorks = 4;  // number of values of ChunkWork

  LayerFold(const FoldSizes& sizes, int32_t width, const LoweredCopies& copies, int32_t replicas,
            const Problem& problem)
      : sizes_(sizes), width_(width), replicas_(replicas), copies_(copies), problem_(problem) {}

  const Graph& few() const { return problem_.graph(); }
  bool find(const ReplicaLanes& few);
  void find_slots();
  void find_labels();
  bool find_runs();
  bool find_runs(const std::vector<int32_t>& layers, const std::vector<int32_t>& devices,
                 const std::vector<bool>& joins, std::optional<LayerRuns>& runs,
                 std::vector<Piece>& pieces) const;
  std::optional<int32_t> layer_of(const Collective& collective) const;
  // layer_joins.cpp:
  bool is_token(int32_t tensor) const;
  int32_t written_by(int32_t tensor) const;
  bool joins_layers(int32_t op) const;
  bool find_joins();
  std::pair<int32_t, int32_t> few_inner_of(int32_t chunk) const;
  std::pair<int32_t, int32_t> inner_of(int32_t chunk) const;
  bool find_parts(Join& join);
  bool waits_behind(Join& join, int32_t sender) const;
  Read joined_read(int32_t tensor) const;
  Read read_of_join(const Join& join, int32_t output) const;
  bool find_all_parts();
  bool same_join(const Join& join, const Join& first) const;
  bool same_outputs(const Join& join, const Join::Part& part, const Join& first) const;
  const Join::Part& first_layered(const Join& join) const;
  bool find_bytes(Join& join) const;
  bool find_gathered(Join& join) const;
  int64_t bytes_of(const Join& join) const;
  int64_t shared_bytes(const Join& join, int32_t device) const;
  bool joins_fit() const;
  int64_t whole_bytes(int32_t tensor) const;
  int64_t layers_more(const Join& join, int32_t device) const;
  int64_t join_bytes(const Join& join, int32_t device) const;
  int32_t joined_output(const Join& join, int32_t device, int32_t layer, const Read& read) const;
  template <class Add>
  void each_joined(const Join& join, int32_t device, Add add) const;
  std::vector<OrderGraph::Source> joined_inputs(int32_t op) const;
  OrderGraph::Source source_of(const Read& read, int32_t slot, int32_t device,
                               int32_t layer) const;
  OrderGraph::Joined joined() const;
  std::optional<std::vector<Piece>> pieces_of(const LayerRuns& runs,
                                              const std::vector<int32_t>& devices,
                                              const std::vector<bool>& joins) const;
  std::optional<Piece> piece_at(const LayerRuns& runs, int32_t begin) const;
  std::vector<Unfolded> unfolded(const std::vector<Piece>& pieces, size_t& next) const;
  bool join_alike(const std::vector<int32_t>& members) const;
  /// Reduced device that represents a device.
  int32_t like_device(int32_t device) const {
    if (sizes_.few_pipeline == sizes_.pipeline || device == 0) return device;
    return device == sizes_.pipeline - 1 ? sizes_.few_pipeline - 1 : 1;
  }
  int32_t few_on(int32_t chunk) const {
    return device_of_chunk(sizes_.schedule, sizes_.few_pipeline, chunk);
  }
  /// Virtual stage of a device in the same round as a reduced one.
  int32_t many_chunk(int32_t few, int32_t device) const {
    return sizes_.chunk_on(sizes_.pipeline, few / sizes_.few_pipeline, device);
  }
  size_t join_place(int32_t which, int32_t slot, int32_t device, int32_t devices) const {
    return static_cast<size_t>((which * slots() + slot) * devices + device);
  }
  const Join& like_join(int32_t which, int32_t slot, int32_t few_device) const {
    return joins_[static_cast<size_t>(
        few_join_[join_place(which, slot, few_device, sizes_.few_pipeline)])];
  }
  bool find_sources();
  void find_work();
  bool find_reads();
  bool find_senders();
  bool find_waits();
  Read read_of(int32_t reader, int32_t tensor) const;
  bool all_alike(bool by_end);
  int32_t few_kind(int32_t layer) const;
  int32_t kind(int32_t layer) const;
  int32_t kind_of(bool first, bool last, int32_t devices, int32_t chunk) const;
  int32_t few_joined(int32_t layer, int32_t way) const;
  int32_t joined(int32_t layer, int32_t way) const;
  int32_t outputs(int32_t few) const;
  bool alike(int32_t op, int32_t second) const;
  bool same_reads(int32_t op, int32_t second) const;
  bool same_costs(int32_t op, int32_t second) const;
  bool same_collective(int32_t a, int32_t b) const;
  bool same_group(int32_t a, int32_t b) const;
  bool same_senders(int32_t slot) const;
  bool in_first_round(int32_t op) const;
  bool find_chunks();
  bool one_layer_alone() const;
  /// Where operators of a layer run: in the virtual stage of the device this many layers on and
  /// this many rounds on; or, if they stay, in their own layer's stage if that is on the same
  /// device (the turn of a V schedule).
  struct Home {
    int32_t ahead, round;
    bool stays;
  };
  template <class ChunkOf>
  int32_t home_chunk(const Home& home, int32_t layer, int32_t devices, ChunkOf chunk_of) const {
    const int32_t own = chunk_of(layer), other = chunk_of(layer + home.ahead);
    return home.stays && sizes_.one_device(devices, own, other) ? own : other;
  }
  std::optional<Home> home_of(int32_t zone, int32_t place) const;
  /// Number of inner layers of the reduced model, numbered from 0; end layers count as outside.
  int32_t few_inner() const { return sizes_.few_layers - 2 * sizes_.ends; }
  int32_t inner() const { return sizes_.layers - 2 * sizes_.ends; }
  int32_t few_chunk(int32_t layer, int32_t round) const;
  int32_t chunk(int32_t layer, int32_t round) const;
  bool waits(int32_t op) const;
  int32_t sender(int32_t chunk, int32_t slot) const;
  bool stands(int32_t chunk, int32_t slot) const;
  /// Index by virtual stage and slot.
  size_t at_chunk(int32_t chunk, int32_t slot) const {
    return static_cast<size_t>(chunk * slots() + slot);
  }
  int32_t slots() const { return static_cast<int32_t>(lanes_->parts().size()) * replicas_; }
  int32_t few_stage(int32_t op) const {
    return copies_.lowered.rank[static_cast<size_t>(op)] / (width_ * replicas_);
  }
  bool number_all();
  void note_begins(const std::vector<LayerRuns::Zone>& zones, int32_t zone, int32_t first,
                   int32_t end, int32_t placed, std::vector<int32_t>& begins) const;
  size_t join_of_collective(int32_t few_one, int32_t device) const;
  void find_places();
  void find_numbers();
  template <class Outside, class Begin, class Add>
  void in_order(const LayerRuns& runs, const std::vector<Piece>& pieces, const LayerRuns* sources,
                Outside outside, Begin begin, Add add) const;
  std::vector<int32_t> collectives_of() const;
  size_t count_all() const;
  void place(int32_t number, int32_t op, int32_t layer, int32_t stage);
  int32_t chunk_for(int32_t op, int32_t layer, int32_t stage) const;
  void find_groups();
  void list_operators();
  Found find_number(const Read& read, bool in_layer) const;
  int32_t number(int32_t zone, int32_t place, int32_t layer) const;

  FoldSizes sizes_;
  int32_t width_;  // devices per stage
  int32_t replicas_;
  const LoweredCopies& copies_;
  const Problem& problem_;
  std::optional<LaneFold> lanes_;
  std::vector<int32_t> slot_of_part_;           // per device of a stage: index in lanes_->parts()
  /// Per reduced operator: slot (part and replica in its stage); layer as counted by sizes_.
  std::vector<int32_t> slot_, label_;
  std::optional<LayerRuns> runs_, collective_runs_;
  std::optional<LayerRuns> source_runs_;        // with stages as layers: of inner stages
  std::vector<Join> joins_;                     // joins per device and slot, in order
  std::vector<int32_t> join_of_, few_join_;     // per reduced operator, or -1; by join_place()
  int32_t joined_ = 0;                          // joins per device and slot
  std::vector<Piece> pieces_, collective_pieces_;
  std::vector<int32_t> source_;                 // per reduced operator: source index, or -1
  std::vector<std::vector<int32_t>> few_source_, source_number_;  // by source and stage
  std::vector<Work> work_;                      // per reduced operator
  std::vector<int32_t> read_first_;             // per reduced operator, and the end
  std::vector<Read> reads_;
  // Reductions wait for the last gradient that their virtual stage sends (ReplicaOptions::behind):
  std::vector<int32_t> sender_;  // by reduced stage and slot: sending operator, or -1
  std::vector<int32_t> told_;                   // per reduced operator: the sender at its index
  std::vector<bool> waits_;                     // per reduced operator
  std::vector<bool> may_wait_;                  // per reduced operator: waits in some stage
  std::vector<std::vector<bool>> all_wait_;     // [zone][place]: waits in all stages that send
  // Layers may differ at the ends of a stage: which reduced layer represents each class. Every
  // round of a device has ends of its own, because its next round belongs to another stage or to
  // none; so have the two sides of the turn of a V schedule.
  bool by_end_ = false;
  std::vector<int32_t> kind_layer_;
  std::vector<std::vector<Home>> home_;         // [zone][place]
  std::vector<int32_t> part_;                   // per reduced operator: device index in its stage
  std::vector<int32_t> stage_of_chunk_;         // per virtual stage: position on the pipeline
  std::vector<Found> found_;                    // per entry of reads_
  std::vector<int32_t> senders_;                // by virtual stage and slot, or -1
  std::vector<int32_t> outside_, begins_;  // operator numbers: outside layers; by zone and layer
  std::vector<int32_t> join_number_, collective_join_;  // by join_place()
  std::vector<int32_t> like_, layer_;           // per operator of the full mesh
  std::vector<int32_t> collective_outside_, collective_begins_, collective_like_;

  std::unique_ptr<OrderGraph> graph_;
  std::vector<int32_t> device_, chunk_, group_of_;
  std::vector<std::vector<int32_t>> lists_;     // [at_chunk()][ChunkWork]
  std::vector<std::vector<int32_t>> updates_;   // by stage and slot
  std::vector<int32_t> few_group_;              // per reduced collective; or kAcross or kJoins
  static constexpr int32_t kAcross = -1, kJoins = -2;
};

}  // namespace trinity
