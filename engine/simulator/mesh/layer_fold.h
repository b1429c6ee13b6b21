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

/// How many layers and stages a mesh has, and how many are enough to see what all do: two layers of
/// every virtual stage (three where the first and the last may differ) and three stages (the first,
/// one between others, the last), or as many as give three layers between those at the ends. Or the
/// layers of a virtual stage together count as one, where what joins some of them (a bucket of
/// gradients) is another thing for fewer; or those of a device, where virtual stages of one are
/// joined: five devices then.
struct FoldSizes {
  int32_t layers = 0, few_layers = 0;      // of all stages
  std::vector<int32_t> few_stages;         // of every virtual stage of the few: of the network's
  int32_t pipeline = 0, few_pipeline = 0;  // devices on that axis
  int32_t rounds = 1;                      // virtual stages of a device
  int32_t ends = 1;                        // layers at each end that stand for themselves
  std::vector<int32_t> chunk_of;           // of every layer its virtual stage
  bool by_device = false;                  // a layer is a device, of all its virtual stages
  bool joins = false;                      // an operator may join gradients of a device's layers
  int64_t bucket_bytes = 0;                // of these at most
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;

  int32_t chunks() const { return pipeline * rounds; }
  int32_t few_chunks() const { return few_pipeline * rounds; }
  /// The virtual stage of a device's round, where so many devices are.
  int32_t chunk_on(int32_t devices, int32_t round, int32_t device) const {
    return round * devices + device_of_chunk(schedule, devices, round * devices + device);
  }
  /// Whether two virtual stages are of one device, of so many.
  bool one_device(int32_t devices, int32_t a, int32_t b) const {
    return a >= 0 && b >= 0 && a < devices * rounds && b < devices * rounds &&
           device_of_chunk(schedule, devices, a) == device_of_chunk(schedule, devices, b);
  }
  /// The virtual stage of a device's next round (step 1), or of the one before (-1); -1: none.
  int32_t joined(int32_t devices, int32_t chunk, int32_t step) const {
    const int32_t round = chunk / devices + step;
    if (round < 0 || round >= rounds) return -1;
    return chunk_on(devices, round, device_of_chunk(schedule, devices, chunk));
  }
  /// The first layer of a virtual stage, and of one of the few.
  int32_t first_layer(int32_t chunk) const {
    if (by_device) return device_of_chunk(schedule, pipeline, chunk);
    return static_cast<int32_t>(std::find(chunk_of.begin(), chunk_of.end(), chunk) -
                                chunk_of.begin());
  }
  int32_t few_in_chunk() const { return by_device ? 1 : few_layers / few_chunks(); }
  int32_t few_first_layer(int32_t chunk) const {
    return by_device ? device_of_chunk(schedule, few_pipeline, chunk) : chunk * few_in_chunk();
  }
  /// The device that one of the few stands for, but for those between others: -1.
  int32_t many_device(int32_t few) const {
    if (few_pipeline == pipeline || few == 0) return few;
    return few == few_pipeline - 1 ? pipeline - 1 : -1;
  }
  /// A virtual stage of the few that does as one of all does.
  int32_t like(int32_t chunk) const {
    if (by_device) {
      const int32_t place = chunk % pipeline, behind = pipeline - few_pipeline;
      return chunk / pipeline * few_pipeline +
             (place < 2 ? place : place < pipeline - 2 ? 2 : place - behind);
    }
    if (few_chunks() == chunks() || chunk < 2) return chunk;
    return chunk == chunks() - 1 ? few_chunks() - 1 : std::min(2, few_chunks() - 2);
  }
  /// The virtual stage that one of the few stands for, but for those between others: -1.
  int32_t many(int32_t few) const {
    if (by_device) {
      const int32_t place = few % few_pipeline, round = few / few_pipeline;
      if (place == 2) return -1;
      return round * pipeline + (place < 2 ? place : pipeline - few_pipeline + place);
    }
    const int32_t apart = few_chunks() < 5 ? 1 : 2;  // so that one is left between them
    if (few_chunks() == chunks() || few < apart) return few;
    return few < few_chunks() - apart ? -1 : chunks() - few_chunks() + few;
  }
};

/// What to try, the fewest layers first, but where these would differ. None where operators are said
/// one by one, a stage has no layers, or no fewer would do.
std::vector<FoldSizes> fold_sizes(const Parallelism& given, int32_t layers);
/// The mesh of fewer stages. Its micro-batches are as few as every schedule takes.
Parallelism with_few_stages(const Parallelism& given, const FoldSizes& sizes);

/// What of a mesh runs, which all others do, too.
struct FoldRuns {
  int32_t replicas = 1;
  std::vector<int32_t> numbers = {};  // which, where experts are shared out; none: the first
  /// Of every stage these of its devices, ascending; none: those whose lane is the first of a kind.
  std::vector<int32_t> parts = {};

  bool operator==(const FoldRuns&) const = default;
};

/// What a mesh of many equal layers runs, unfolded from what one with fewer layers and stages lowers
/// to (of its first replica the first lane of each kind). That all layers do the same is read off
/// the lowered graph: in every run of operators that a layer has, those of one place cost the same,
/// and read the same places of their own layer and of its neighbours; so layers between others, of
/// which there may be any number, are repetitions of one (manual/symmetry.md). Numbers of operators and
/// collectives are in the order that lowering all layers would give them.
class LayerFold {
 public:
  /// few: of the whole replica; copies: what of it runs; problem: of their graph; mesh: the few's.
  /// Nothing where layers differ.
  static std::unique_ptr<LayerFold> make(const FoldSizes& sizes, const ReplicaLanes& few,
                                         const Mesh& mesh, const LoweredCopies& copies,
                                         const FoldRuns& runs, const Problem& problem);

  int32_t operators() const { return static_cast<int32_t>(like_.size()); }
  /// Before graph(), group_of() and pieces() are asked for. Not for several threads at once.
  void unfold();
  const OrderGraph& graph() const { return *graph_; }
  /// Of every operator its device in its replica.
  const std::vector<int32_t>& device() const { return device_; }
  /// How many of the few operators join what several layers write.
  int32_t joins() const { return static_cast<int32_t>(joins_.size()); }
  /// How many replicas run, and the one of an operator.
  int32_t replicas() const { return replicas_; }
  int32_t replica(int32_t op) const {
    return slot_[static_cast<size_t>(like_[static_cast<size_t>(op)])] % replicas_;
  }
  /// Whether its operators are those of a device.
  bool runs_on(int32_t device) const {
    return slot_of_part_[static_cast<size_t>(device % width_)] >= 0;
  }
  /// The lanes of a mesh of all stages.
  ReplicaLanes lanes(const Mesh& mesh) const { return lanes_->lanes(mesh); }
  /// Of a collective its group in lanes(), or -1: it is between the replicas.
  int32_t group_of(int32_t collective) const { return group_of_[collective]; }
  LoweredCopies::Among among(int32_t collective) const {
    return copies_.among[static_cast<size_t>(collective_like_[static_cast<size_t>(collective)])];
  }
  /// As pipeline_pieces() of a schedule with the same places for stages.
  OrderPieces pieces(PipelineSchedule schedule, int32_t micro_batches) const;

 private:
  static constexpr int32_t kSource = -2, kJoined = -3, kOutside = 1 << 29, kFixed = -(1 << 30);
  /// For layers on: the last one of the virtual stage that its device runs before the reader's, and
  /// the first one of that which it runs behind, for weights that are gathered ahead.
  static constexpr int32_t kBefore = 1 << 30, kBehind = kBefore + 1;
  /// What an operator reads: of a layer so many on, or of none (zone -1, place: its number), of
  /// these a source on its own device (zone kSource, place: which), or of what its device joins
  /// (zone kJoined, place: which) the output-th of its own layer, or (offset kOutside) of no layer.
  struct Read {
    int32_t zone, place, offset, output;
    bool operator==(const Read&) const = default;
  };
  /// The same among all: so far behind what begins_ has from `begins` on for the reader's layer, or
  /// by itself (kFixed).
  struct Found {
    int32_t first, begins;
  };
  /// An operator of a device that joins what its layers write: a bucket of gradients, or of
  /// weights. In all layers its inputs are those of one, repeated; an output belongs to each, or it
  /// has none.
  struct Join {
    /// Inputs that are of the layers of a virtual stage, or one that is of none (chunk -1).
    struct Part {
      int32_t input, chunk, layers;
      bool up;
    };
    int32_t op, device, which, slot;
    int32_t inputs = 0;
    std::vector<Part> parts = {};
    std::vector<Read> each = {};        // of a layer's
    std::vector<int32_t> behind = {};   // virtual stages for whose last gradient it waits
    // Of its inputs, and as they were put in the bucket, before they became shares:
    int64_t bytes = 0, layer_bytes = 0, whole_bytes = 0, layer_whole_bytes = 0;
    bool adds = false;             // its collective has the bytes of its inputs, or
    int64_t shares = 0;            // of so many shares one; 0: it has not
  };
  /// Items of a list whose zones are broken by joins: a join (zone -1), or runs of a zone, those of
  /// the layers from one virtual stage to another.
  struct Piece {
    int32_t begin, end, zone, chunk, last_chunk;
    int32_t device;  // of all, which a join is on; of those for which several stand: -1
    bool between, devices_up;  // it is of such a one, and how these ascend
  };
  /// A join among all, or runs of a zone: of these layers.
  struct Unfolded {
    int32_t item, device, zone, first, end;
  };
  enum Work : uint8_t { kForward, kBackward, kInput, kWeight, kUpdate, kMember };
  static constexpr size_t kWorks = 4;  // of ChunkWork

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
  /// The few's device that one of all is like.
  int32_t like_device(int32_t device) const {
    if (sizes_.few_pipeline == sizes_.pipeline || device == 0) return device;
    return device == sizes_.pipeline - 1 ? sizes_.few_pipeline - 1 : 1;
  }
  int32_t few_on(int32_t chunk) const {
    return device_of_chunk(sizes_.schedule, sizes_.few_pipeline, chunk);
  }
  /// The virtual stage of a device that is of the same round as one of the few.
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
  /// Where operators of a layer run: so many layers on, in a device's so-manyth virtual stage; or,
  /// if they stay, in their layer's where that is of the same device (where a V turns round).
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
  /// The layers between those at the ends, which alone are numbered, from 0; the others are of no
  /// layer.
  int32_t few_inner() const { return sizes_.few_layers - 2 * sizes_.ends; }
  int32_t inner() const { return sizes_.layers - 2 * sizes_.ends; }
  int32_t few_chunk(int32_t layer, int32_t round) const;
  int32_t chunk(int32_t layer, int32_t round) const;
  bool waits(int32_t op) const;
  int32_t sender(int32_t chunk, int32_t slot) const;
  bool stands(int32_t chunk, int32_t slot) const;
  /// By virtual stage and slot.
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
  int32_t width_;  // devices of a stage
  int32_t replicas_;
  const LoweredCopies& copies_;
  const Problem& problem_;
  std::optional<LaneFold> lanes_;
  std::vector<int32_t> slot_of_part_;           // of every device of a stage among lanes_->parts()
  /// Of the few operators: its place among the parts x replicas of a stage; layers as sizes_ counts.
  std::vector<int32_t> slot_, label_;
  std::optional<LayerRuns> runs_, collective_runs_;
  std::optional<LayerRuns> source_runs_;        // in stages for layers: of those between the ends
  std::vector<Join> joins_;                     // those of a device and slot in order
  std::vector<int32_t> join_of_, few_join_;     // of the few operators, or -1; by join_place()
  int32_t joined_ = 0;                          // how many a device and slot has
  std::vector<Piece> pieces_, collective_pieces_;
  std::vector<int32_t> source_;                 // of the few operators: which source it is, or -1
  std::vector<std::vector<int32_t>> few_source_, source_number_;  // by source and stage
  std::vector<Work> work_;                      // of the few operators
  std::vector<int32_t> read_first_;             // of the few, and the end
  std::vector<Read> reads_;
  // Reductions wait for the last gradient that their virtual stage sends (ReplicaOptions::behind):
  std::vector<int32_t> sender_;                 // by few one and slot what sends it, or -1
  std::vector<int32_t> told_;                   // of the few operators: of its place one that sends
  std::vector<bool> waits_;                     // of the few operators
  std::vector<bool> may_wait_;                  // the same: in some stage
  std::vector<std::vector<bool>> all_wait_;     // [zone][place], of stages that send
  // Layers are alike, or those at one end of a stage are: which of the few stands for each kind.
  // Each round of a device has ends of its own: what it does next is another one's, or nothing. So
  // have those between which a V turns round.
  bool by_end_ = false;
  std::vector<int32_t> kind_layer_;
  std::vector<std::vector<Home>> home_;         // [zone][place]
  std::vector<int32_t> part_;                   // of the few operators: its device in a stage
  std::vector<int32_t> stage_of_chunk_;         // of all virtual stages: where on the pipeline
  std::vector<Found> found_;                    // of reads_
  std::vector<int32_t> senders_;                // by virtual stage and slot, or -1
  std::vector<int32_t> outside_, begins_;       // numbers: of what is of no layer; by zone, layer
  std::vector<int32_t> join_number_, collective_join_;  // by join_place()
  std::vector<int32_t> like_, layer_;           // of all operators
  std::vector<int32_t> collective_outside_, collective_begins_, collective_like_;

  std::unique_ptr<OrderGraph> graph_;
  std::vector<int32_t> device_, chunk_, group_of_;
  std::vector<std::vector<int32_t>> lists_;     // [at_chunk()][ChunkWork]
  std::vector<std::vector<int32_t>> updates_;   // by stage and slot
  std::vector<int32_t> few_group_;              // of every few collective, kAcross or kJoins
  static constexpr int32_t kAcross = -1, kJoins = -2;
};

}  // namespace trinity
