#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/collective.h"
#include "strategy/chunk_order.h"

namespace trinity {

/// The axes of a mesh in their default order, innermost first, as in Megatron-LM.
enum class Axis : uint8_t { tensor, context, placement, expert, data, pipeline };
inline constexpr size_t kAxes = 6;
template <>
inline constexpr auto kWords<Axis> = words("axis", "tensor", "context", "placement", "expert", "data", "pipeline");

/// Devices as an array with named axes (JAX's Mesh, PyTorch's DeviceMesh); those that are left over
/// stay idle.
struct Mesh {
  int32_t data = 1;      ///< replicas
  int32_t tensor = 1;    ///< devices that share every operator of a replica's stage
  int32_t pipeline = 1;  ///< stages, each on devices of its own
  int32_t context = 1;   ///< devices that share the sequence of a replica's stage
  int32_t expert = 1;    ///< a factor of `data`: devices that share the experts
  /// Slots in a replica's stage, each of tensor x context devices, on which single operators run
  /// (inter-operator parallelism): Parallelism::inside.
  int32_t placement = 1;
  /// Axes, innermost first; those not named follow in the order of Axis.
  std::vector<Axis> order;
  std::vector<int32_t> devices;  ///< by rank; empty: the cluster's, in its order

  bool operator==(const Mesh&) const = default;
  /// The product of all axes but `expert`, at most kMaxDevices.
  int64_t device_count() const;
  static constexpr int64_t kMaxDevices = int64_t{1} << 62;
  /// Number of devices that share an operator: one slot in a stage of one replica. This and width()
  /// are for meshes that check_mesh() accepts: they may overflow for others.
  int32_t parts() const { return tensor * context; }
  /// Number of devices in a stage of one replica.
  int32_t width() const { return parts() * placement; }
  /// The device of a stage's and replica's part: placement x context x tensor, tensor innermost.
  int32_t device(int32_t stage, int32_t replica, int32_t part) const;
};

/// Which part of a forward pass is recomputed before the backward pass.
enum class Recompute : uint8_t {
  none,
  selective,  ///< the core of attention: from the scores to the weighted values
  full,       ///< every layer; only its inputs are kept
  modules,    ///< parts of every layer: Parallelism::recompute_modules
};

/// How context parallelism exchanges keys and values.
enum class ContextKind : uint8_t {
  all_gather,  ///< all at once
  ring,        ///< part by part, from neighbour to neighbour (ring attention, Liu et al. 2023)
  /// The core of attention is split by heads instead of the sequence, with all-to-alls before and
  /// after it (DeepSpeed-Ulysses, Jacobs et al. 2023).
  all_to_all,
};
template <>
inline constexpr auto kWords<ContextKind> = words("cp_comm_type", "all_gather", "ring", "all_to_all");

/// How replicas synchronise.
enum class Synchronise : uint8_t {
  all_reduce,        ///< gradients are reduced over all, in every step
  hierarchical,      ///< in two levels: within groups of `inner` replicas, then across
  local_sgd,         ///< each trains alone; weights are averaged every few steps (Stich 2019)
  parameter_server,  ///< gradients go to `servers` replicas, which update and hand out weights
  daso,  ///< gradients in groups every step, weights across every few (Coquelin et al. 2022)
};
template <>
inline constexpr auto kWords<Synchronise> =
    words("sync", "all_reduce", "hierarchical", "local_sgd", "parameter_server", "daso");

struct Synchronisation {
  Synchronise kind = Synchronise::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;  ///< between replicas
  int32_t inner = 1;    ///< hierarchical, daso: replicas of an inner group, neighbours on `data`
  /// local_sgd, daso: steps from one synchronisation to the next; 0: never.
  int32_t every = 1;
  int32_t servers = 1;  ///< parameter_server: the first replicas, which are servers
  /// parameter_server: no replica waits for the others. Servers apply the gradient of one replica
  /// after the other, in the replicas' order, and each continues with the weights after its own
  /// update, so that gradient staleness is data - 1 updates (delayed SGD, round robin: Langford,
  /// Smola and Zinkevich 2009; Downpour SGD, Dean et al. 2012, fixes no order). A micro-batch is a
  /// mini-batch with its update. daso: weights sent in a step are merged after the next step, by
  /// Coquelin et al. 2022, equation 1.
  bool asynchronous = false;

  bool operator==(const Synchronisation&) const = default;
  /// True if replicas synchronise in inner groups of `inner`, which shard states.
  bool in_runs() const { return kind == Synchronise::hierarchical || kind == Synchronise::daso; }
  /// True if replicas differ between synchronisations.
  bool seldom() const { return kind == Synchronise::local_sgd || kind == Synchronise::daso; }
};

/// Throws ArgumentError for a field that this kind does not have, naming the kinds that have it.
void check_fields(const Synchronisation& given);

/// Choices for one operator that override the fields of a mesh.
struct OperatorChoice {
  std::optional<bool> recompute;  ///< whether it is recomputed before the backward pass
  /// The dimension of its iteration space that is split over `tensor`; empty: it is not split.
  std::optional<std::string> split;

  bool operator==(const OperatorChoice&) const = default;
};

/// A strategy that is the same for all layers of a network.
struct Parallelism {
  Mesh mesh;
  /// "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-interleaved", "zb-v", "dualpipe-v"
  /// (strategy/chunk_order.h), or "order"; with one stage micro-batches accumulate.
  std::string schedule = "1f1b";
  PipelineOrder tasks;         ///< "order": the tasks of every pipeline rank (strategy/own_order.h)
  int32_t virtual_stages = 1;  ///< per pipeline rank
  int32_t micro_batches = 1;   ///< the graph's batch is one micro-batch of one replica
  /// Layers of every virtual stage; empty: the same number. Operators before the layers are in the
  /// first stage, operators after them in the last.
  std::vector<int32_t> stages;
  Recompute recompute = Recompute::none;
  uint8_t recompute_modules = 0;  ///< Recompute::modules: a bit per RecomputeModule (strategy/recompute_modules.h)
  /// Tensor parallelism alone: what it leaves whole (norms, sums, dropouts) is cut along the
  /// sequence (Korthikanti et al. 2022), so that reduce-scatters and all-gathers replace
  /// all-reduces.
  bool sequence_parallel = false;
  /// Tensors that all devices of a stage hold whole are sent in parts, which the next stage gathers
  /// (strategy/sent_parts.h).
  bool scatter_gather = false;
  /// Sums of input gradients over `tensor` go on while gradients of weights are computed
  /// (graph/split_backward.h, overlap_sums()).
  bool overlap_tp_grad_allreduce = false;
  /// The ZeRO stage, that is what replicas shard (ZeRO, Rajbhandari et al. 2020): 1 the optimiser's
  /// state, 2 gradients too, 3 weights too; 0 nothing.
  int32_t zero_stage = 0;
  /// Share of the optimiser's states that the host keeps, and of the updates that it computes: strategy/offload.h.
  double optimizer_offload_fraction = 0;
  /// Share of the activations of layers that the host keeps from the forward to the backward pass: the same file.
  double activation_offload_fraction = 0;
  int64_t bucket_bytes = 25'000'000;  ///< of gradients that are reduced together
  ContextKind cp_comm_type = ContextKind::all_gather;  ///< with `context` above one
  Synchronisation sync;
  std::map<std::string, OperatorChoice> operators;  ///< by the names of forward operators
  /// Per operator of the graph its position on the axis `placement` inside its stage, from 0;
  /// empty: not given, which is an error for an axis above one.
  std::vector<int32_t> inside;

  bool operator==(const Parallelism&) const = default;
};

}  // namespace trinity
