#pragma once

#include <cstdint>
#include <type_traits>

#include "strategy/mesh.h"
#include "strategy/recompute_modules.h"

// The words of a strategy that is the same for all layers (Parallelism), each declared once. Hashes, strategy files,
// tables of scripts, the options that scripts declare, and what kept results are compared by come from each_mesh_word().

namespace trinity {

/// Results that are kept between evaluations, each decided by some of the words: without().
enum KeptBy : uint8_t {
  kSplits = 1,     ///< graphs whose operators are split (Lowering)
  kStructure = 2,  ///< lowered graphs, on any devices and with any number of micro-batches (structure_of())
  kProfile = 4,    ///< profiles of one stage (UnitProfiler::part_of())
};

/// What the entries of a list of integers are.
enum class Listed : uint8_t { counts, devices, places };

struct MeshWord {
  const char* name;
  const char* help = "";
  int64_t min = 0, max = 0;  ///< of integers, both included
  int free = 0;              ///< KeptBy bits: results that the word does not decide
  bool always = false;       ///< whether it is written where it has its default, too
  Listed listed = Listed::counts;
};

inline const char* choice_name(Axis value) { return axis_name(value); }
inline const char* choice_name(ContextKind value) { return context_kind_name(value); }
inline const char* choice_name(Synchronise value) { return synchronise_name(value); }
inline const char* choice_name(CollectiveAlgorithm value) { return collective_algorithm_name(value); }
inline void parse_choice(std::string_view name, Axis& value) { value = parse_axis(name); }
inline void parse_choice(std::string_view name, ContextKind& value) { value = parse_context_kind(name); }
inline void parse_choice(std::string_view name, Synchronise& value) { value = parse_synchronise(name); }
inline void parse_choice(std::string_view name, CollectiveAlgorithm& value) {
  value = parse_collective_algorithm(name);
}

/// How many of its names, from the first, a script may say.
template <class Choice>
inline constexpr size_t kChoices = 0;
template <>
inline constexpr size_t kChoices<ContextKind> = 3;
template <>
inline constexpr size_t kChoices<Synchronise> = 5;
template <>
inline constexpr size_t kChoices<CollectiveAlgorithm> = 6;

/// `recompute` and `recompute_modules`, which are one word.
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

/// Calls visit(word, get) for every word in the order of files, where get(given) is its value in a Parallelism, and
/// visit.group(name, words) for words in an object of their own, which words() visits: `mesh`, `schedule` (whose first word
/// has the group's name) and `synchronise`.
template <class Visit>
void each_mesh_word(Visit&& visit) {
#define TRINITY_OF(path) [](auto& given) -> auto& { return given.path; }
  constexpr int64_t kMostAxis = 4096, kMost = 1 << 20;
  visit.group("mesh", [&] {
    const auto axis = [&](const char* name, const char* help, int free, auto get) {
      visit(MeshWord{name, help, 1, kMostAxis, free}, get);
    };
    axis("data", "replicas", kSplits | kProfile, TRINITY_OF(mesh.data));
    axis("tensor", "devices that share every operator", 0, TRINITY_OF(mesh.tensor));
    axis("pipeline", "stages", kProfile, TRINITY_OF(mesh.pipeline));
    axis("context", "devices that share the sequence", 0, TRINITY_OF(mesh.context));
    axis("expert", "of data: devices that share the experts", 0, TRINITY_OF(mesh.expert));
    axis("placement", "places in a replica's stage on which single operators run (`inside`)", 0,
         TRINITY_OF(mesh.placement));
  });
  constexpr int kNone = kSplits | kStructure | kProfile;
  visit(MeshWord{.name = "order", .free = kNone}, TRINITY_OF(mesh.order));
  visit(MeshWord{.name = "devices", .free = kNone, .listed = Listed::devices}, TRINITY_OF(mesh.devices));
  visit.group("schedule", [&] {
    visit(MeshWord{.name = "schedule", .always = true}, TRINITY_OF(schedule));
    visit(MeshWord{"micro_batches", "of a step", 1, kMost, kNone, true}, TRINITY_OF(micro_batches));
    visit(MeshWord{"virtual_stages", "of a device: some of interleaved schedules, two of zb-v and dualpipe-v", 1, kMostAxis,
                   kProfile},
          TRINITY_OF(virtual_stages));
    visit(MeshWord{.name = "stages", .max = kMost, .free = kProfile}, TRINITY_OF(stages));
    visit(MeshWord{.name = "tasks", .free = kNone}, TRINITY_OF(tasks));
  });
  visit(MeshWord{.name = "recompute", .free = kSplits},
        [](auto& given) { return RecomputeWord<std::remove_reference_t<decltype(given)>>{given}; });
  visit(MeshWord{"bucket_bytes", "of gradients that are reduced together", 1, int64_t{1} << 50, kProfile},
        TRINITY_OF(bucket_bytes));
  visit(MeshWord{"sequence_parallel", "what tensor leaves whole is cut along the sequence"}, TRINITY_OF(sequence_parallel));
  visit(MeshWord{.name = "scatter_gather",
                 .help = "stages send each other parts of what tensor leaves whole, and gather them there",
                 .free = kProfile},
        TRINITY_OF(scatter_gather));
  visit(MeshWord{.name = "overlap_tensor",
                 .help = "sums of input gradients over tensor go on while gradients of weights are computed",
                 .free = kProfile},
        TRINITY_OF(overlap_tensor));
  visit(MeshWord{"shard", "over data: 1 states of the optimiser, 2 gradients too, 3 weights too", 0, 3,
                 kSplits | kProfile},
        TRINITY_OF(shard));
  visit(MeshWord{.name = "context_kind",
                 .help = "how parts of the sequence see keys and values of others: all at once, round a ring, or by heads",
                 .free = kProfile},
        TRINITY_OF(context_kind));
  visit.group("synchronise", [&] {
    const auto way = [&](MeshWord word, auto get) {
      word.free = kSplits | kProfile;
      visit(word, get);
    };
    way({.name = "kind",
         .help = "gradients in every step (in one level or two), weights every few, servers, or gradients and weights",
         .always = true},
        TRINITY_OF(synchronise.kind));
    way({"algorithm", "of what replicas do together"}, TRINITY_OF(synchronise.algorithm));
    way({"inner", "hierarchical, daso: replicas of a run, at least two", 1, kMost}, TRINITY_OF(synchronise.inner));
    way({"every", "local_sgd, daso: steps from meeting to meeting (0: there is none)", 0, kMost},
        TRINITY_OF(synchronise.every));
    way({"servers", "parameter_server: replicas that are servers", 1, kMost}, TRINITY_OF(synchronise.servers));
    way({"asynchronous", "parameter_server: gradients are applied one by one, and no replica waits for others; "
         "daso: weights that a step sends are merged behind the next"},
        TRINITY_OF(synchronise.asynchronous));
  });
  visit(MeshWord{.name = "inside", .listed = Listed::places}, TRINITY_OF(inside));
  visit(MeshWord{.name = "operators"}, TRINITY_OF(operators));
#undef TRINITY_OF
}

/// A strategy whose words that do not decide a kept result have their defaults.
Parallelism without(Parallelism given, KeptBy result);

}  // namespace trinity
