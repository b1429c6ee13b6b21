#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/thread_pool.h"
#include "selection/selection_model.h"

namespace trinity {

/// An elimination order with its requirements (papers/notes.md "PaSE: elimination"): node order[i]
/// is minimised out over all assignments of sets[i], its neighbours at that point that come later
/// (PaSE's dependent set).
struct EliminationOrder {
  std::vector<int32_t> order;
  std::vector<std::vector<int32_t>> sets;
  int32_t widest_set = 0;
  double combinations = 0;          ///< total over nodes of combinations with their sets: the work
  double largest_combinations = 0;  ///< maximum over nodes
  double table_entries = 0;         ///< of all tables
  double peak_entries = 0;          ///< maximum held at one time
  bool complete = false;            ///< false: abandoned because one node needed too much
};

/// Rule for the next node.
enum class EliminationRule {
  generate_seq,   ///< fewest neighbours left, then lowest number: PaSE's GenerateSeq
  smallest_table  ///< fewest combinations of neighbours
};

/// The elimination order of nodes with these numbers of `states` and distinct neighbour pairs
/// `edges`. Stops if one node needs more than `most` combinations.
EliminationOrder elimination_order(const std::vector<int32_t>& states,
                                   const std::vector<std::pair<int32_t, int32_t>>& edges,
                                   EliminationRule rule, double most);

/// Peak memory of an elimination in bytes: tables and choices.
double elimination_bytes(const EliminationOrder& elimination);

struct ExactSelection {
  double cost = 0;
  std::vector<int32_t> states;
};

/// The best states of a model, ignoring usages, by bucket elimination in a complete order:
/// streaming minima over index arithmetic, without materialised tuples. Ties: the lowest state, in
/// reverse order of elimination. Results do not depend on the number of threads. Throws Interrupted
/// on stop_flag(), TimeIsUp. `tick` is called before every node.
ExactSelection eliminate(const SelectionModel& model, const EliminationOrder& elimination,
                         ThreadPool& pool, const std::function<void()>& tick = {},
                         const Deadline& deadline = {});

}  // namespace trinity
