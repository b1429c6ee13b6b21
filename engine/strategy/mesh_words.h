#pragma once

#include <cstdint>
#include <type_traits>

#include "strategy/mesh.h"
#include "strategy/recompute_modules.h"

// The fields of a strategy that is the same for all layers (Parallelism), each declared once. Hashes, strategy files,
// tables of scripts, the options that scripts declare, and the keys of kept results come from each_mesh_word().

namespace trinity {

/// Results that are kept between evaluations, each of which depends on some of the fields: without().
enum KeptBy : uint8_t {
  kSplits = 1,     ///< graphs whose operators are split (Lowering)
  kStructure = 2,  ///< lowered graphs, on any devices and with any number of micro-batches (structure_of())
  kProfile = 4,    ///< profiles of one stage (UnitProfiler::part_of())
};

/// The meaning of the entries of a list of integers.
enum class Listed : uint8_t { counts, devices, places };

struct MeshWord {
  const char* name;
  const char* help = "";
  int64_t min = 0, max = 0;  ///< of integers, both included
  int free = 0;              ///< KeptBy bits: results that do not depend on the field
  bool always = false;       ///< whether it is written even if it has its default
  Listed listed = Listed::counts;
};

/// Number of its names, from the first, that a script may use.
template <class Choice>
inline constexpr size_t kChoices = 0;
template <>
inline constexpr size_t kChoices<ContextKind> = 3;
template <>
inline constexpr size_t kChoices<Synchronise> = 5;
template <>
inline constexpr size_t kChoices<CollectiveAlgorithm> = 6;

/// `recompute` and `recompute_modules`, which are one field of scripts.
template <class Given>
struct RecomputeWord {
  Given& given;
  template <class Other>
  bool operator==(const RecomputeWord<Other>& other) const {
    return given.recompute == other.given.recompute && given.recompute_modules == other.given.recompute_modules;
  }
  template <class Other>
  void operator=(const RecomputeWord<Other>& other) const {
    given.recompute = other.given.recompute;
    given.recompute_modules = other.given.recompute_modules;
  }
};

/// Calls visit(word, get) for every field in the order of files, where get(given) is its value in a Parallelism, and
/// visit.group(name, words) for the fields of a nested object, which words() visits: `mesh`, `schedule` (whose first
/// field has the group's name) and `sync`.
template <class Visit>
void each_mesh_word(Visit&& visit) {
#define TRINITY_OF(path) [](auto& given) -> auto& { return given.path; }
  constexpr int64_t kMostAxis = 4096, kMost = 1 << 20;
  visit.group("mesh", [&] {
    const auto axis = [&](const char* name, const char* help, int free, auto get) {
      visit(MeshWord{name, help, 1, kMostAxis, free}, get);
    };
    axis("data", "data parallelism: replicas", kSplits | kProfile, TRINITY_OF(mesh.data));
    axis("tensor", "tensor parallelism: devices that split every operator", 0, TRINITY_OF(mesh.tensor));
    axis("pipeline", "pipeline parallelism: stages", kProfile, TRINITY_OF(mesh.pipeline));
    axis("context", "context parallelism: devices that split the sequence", 0, TRINITY_OF(mesh.context));
    axis("expert", "expert parallelism, a factor of data: devices that share the experts", 0, TRINITY_OF(mesh.expert));
    axis("placement", "devices of a replica's stage between which single operators are placed (`inside`)", 0,
         TRINITY_OF(mesh.placement));
  });
  constexpr int kNone = kSplits | kStructure | kProfile;
  visit(MeshWord{.name = "order", .free = kNone}, TRINITY_OF(mesh.order));
  visit(MeshWord{.name = "devices", .free = kNone, .listed = Listed::devices}, TRINITY_OF(mesh.devices));
  visit.group("schedule", [&] {
    visit(MeshWord{.name = "schedule", .always = true}, TRINITY_OF(schedule));
    visit(MeshWord{"micro_batches", "micro-batches per step and replica", 1, kMost, kNone, true}, TRINITY_OF(micro_batches));
    visit(MeshWord{"virtual_stages", "virtual stages per device: two or more with interleaved schedules, two with zb-v and dualpipe-v", 1, kMostAxis,
                   kProfile},
          TRINITY_OF(virtual_stages));
    visit(MeshWord{.name = "stages", .max = kMost, .free = kProfile}, TRINITY_OF(stages));
    visit(MeshWord{.name = "tasks", .free = kNone}, TRINITY_OF(tasks));
  });
  visit(MeshWord{.name = "recompute", .free = kSplits},
        [](auto& given) { return RecomputeWord<std::remove_reference_t<decltype(given)>>{given}; });
  visit(MeshWord{"bucket_bytes", "size of the buckets in which gradients are reduced", 1, int64_t{1} << 50, kProfile},
        TRINITY_OF(bucket_bytes));
  visit(MeshWord{"sequence_parallel", "split operators that tensor parallelism does not split along the sequence"}, TRINITY_OF(sequence_parallel));
  visit(MeshWord{.name = "scatter_gather",
                 .help = "send one slice per tensor rank between stages and gather the slices there (Megatron-LM's scatter-gather)",
                 .free = kProfile},
        TRINITY_OF(scatter_gather));
  visit(MeshWord{.name = "overlap_tp_grad_allreduce",
                 .help = "overlap all-reduces of input gradients over tensor with the computation of weight gradients"},
        TRINITY_OF(overlap_tp_grad_allreduce));
  visit(MeshWord{"zero_stage", "ZeRO stage over data: 1 shards optimiser states, 2 gradients too, 3 weights too", 0, 3,
                 kSplits | kProfile},
        TRINITY_OF(zero_stage));
  visit(MeshWord{"optimizer_offload_fraction", "share of optimizer states and updates on the host (CPU offload)", 0, 1,
                 kSplits | kProfile},
        TRINITY_OF(optimizer_offload_fraction));
  visit(MeshWord{"activation_offload_fraction", "share of the layers' activations on the host between forward and backward", 0,
                 1, kSplits},
        TRINITY_OF(activation_offload_fraction));
  visit(MeshWord{.name = "cp_comm_type",
                 .help = "how context parallelism exchanges keys and values: all at once, in a ring, or split by heads (Ulysses)",
                 .free = kProfile},
        TRINITY_OF(cp_comm_type));
  visit.group("sync", [&] {
    const auto way = [&](MeshWord word, auto get) {
      word.free = kSplits | kProfile;
      visit(word, get);
    };
    way({.name = "kind",
         .help = "all_reduce or hierarchical: gradients in every step, in one or two levels; local_sgd: weights every few steps; parameter_server; daso: gradients within groups and weights across them",
         .always = true},
        TRINITY_OF(sync.kind));
    way({"algorithm", "algorithm of the collectives between replicas"}, TRINITY_OF(sync.algorithm));
    way({"inner", "hierarchical, daso: replicas per inner group, usually a node; at least two", 1, kMost}, TRINITY_OF(sync.inner));
    way({"every", "local_sgd, daso: steps between synchronizations (0: never)", 0, kMost},
        TRINITY_OF(sync.every));
    way({"servers", "parameter_server: number of replicas that are servers", 1, kMost}, TRINITY_OF(sync.servers));
    way({"asynchronous", "parameter_server: servers apply gradients one by one, and no replica waits for another; "
         "daso: weights sent in one step are merged after the next step"},
        TRINITY_OF(sync.asynchronous));
  });
  visit(MeshWord{.name = "inside", .listed = Listed::places}, TRINITY_OF(inside));
  visit(MeshWord{.name = "operators"}, TRINITY_OF(operators));
#undef TRINITY_OF
}

/// A copy of a strategy in which the fields that a kept result does not depend on have their defaults.
Parallelism without(Parallelism given, KeptBy result);

}  // namespace trinity
