#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// A graph cut into the stages of a pipeline.
struct PipelineSplit {
  std::vector<int32_t> stage;      ///< of every operator, from 0 (members of collectives too)
  std::vector<int32_t> placement;  ///< device of every operator
  int64_t load_ns = 0;             ///< the largest work of a stage on its device, a micro-batch
};

/// Cuts a sequence into consecutive parts so that the largest load is least: exactly, by a binary
/// search over the load with greedy filling. work[part * elements + e] is element e's load on part
/// `part` (parts may run at different speeds); empty parts are allowed. Returns the part of every
/// element; among optimal cuts that whose early parts hold most. Throws ArgumentError for no part,
/// a size that does not fit, or negative work. O(parts * elements * log(total)).
std::vector<int32_t> contiguous_split(std::span<const int64_t> work, int32_t parts);

/// The colocation units in the order in which forward reaches them: by their first operator that
/// costs anything or depends on one that does; units that are only weights or data (TaskGraph::
/// follows) by their first reader. This is the chain that pipelines cut.
std::vector<int32_t> pipeline_order(const Problem& problem);

/// GPipe's balance (Huang et al. 2019), exactly: units in pipeline_order(), stage k on device
/// `devices[k]` (all devices in turn when empty), the largest sum of operator times least. GPipe
/// minimises the variance of the stages and torchgpipe does so heuristically (papers.md 6.7); the
/// slowest stage is what bounds a pipeline.
PipelineSplit gpipe_split(const Problem& problem, std::span<const int32_t> devices = {});

}  // namespace trinity
