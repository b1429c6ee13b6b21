#pragma once

#include <span>
#include <string>
#include <vector>

#include "strategy/chunk_order.h"

namespace trinity {

/// One row per pipeline rank, as PyTorch dumps schedules ('compute_only'): "0F0,0F1,0B0,0B1". A cell is the virtual
/// stage, the work (F forward, B backward, I its input gradients, W its weight gradients) and the micro-batch, numbers
/// from 0.
std::vector<std::string> order_rows(const PipelineOrder& order);

/// Reads such rows. "(0F1;3B0)OVERLAP_F_B" is two tasks, one after the other. Empty cells and messages of format
/// 'compute_comms' are skipped. Throws ArgumentError with row and column for any other cell, and for a row without
/// tasks.
PipelineOrder parse_order(std::span<const std::string> rows);

/// The schedule that has its virtual stages where this order has them, and splits the backward pass if this order does.
PipelineSchedule layout_of(const PipelineOrder& order);
int32_t virtual_stages_of(const PipelineOrder& order);
int32_t micro_batches_of(const PipelineOrder& order);

/// Throws ArgumentError with the row unless each virtual stage runs each micro-batch forward and backward once, on one
/// rank and after the tasks of its stage that it depends on; stages are assigned round-robin, or forwards and then
/// backwards; and no tasks wait for each other. Throws LimitError beyond 2^22 stages times micro-batches. O(tasks).
void check_order(const PipelineOrder& order);

/// The name of the schedule that has this order for some number of micro-batches; empty if none has.
std::string schedule_name_of(const PipelineOrder& order);

}  // namespace trinity
