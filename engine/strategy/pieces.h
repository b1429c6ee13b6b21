#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "strategy/chunk_order.h"

namespace trinity {

/// The order of a pipeline (Schedule::order) by pieces: lists of operators that a device runs one
/// after the other, and which list it runs in which micro-batch. Its size does not go by operators
/// times micro-batches.
struct OrderPieces {
  struct Piece {
    int32_t list, micro_batch;
  };
  int32_t micro_batches = 1;
  std::vector<int32_t> operators;    ///< of all lists
  std::vector<int32_t> list_first;   ///< where every list begins in it, and the end
  std::vector<Piece> pieces;         ///< one device after the other
  std::vector<int32_t> piece_first;  ///< where every device begins in it, and the end

  int32_t lists() const { return static_cast<int32_t>(list_first.size()) - 1; }
  int32_t devices() const { return static_cast<int32_t>(piece_first.size()) - 1; }
  std::span<const int32_t> list(size_t number) const {
    return {operators.begin() + list_first[number], operators.begin() + list_first[number + 1]};
  }
  std::span<const Piece> of(size_t device) const {
    return {pieces.begin() + piece_first[device], pieces.begin() + piece_first[device + 1]};
  }
};

/// Returns a function of the micro-batches: the same as pipeline_schedule() for a schedule that is no stream, with the
/// same errors. Refers to all arguments but `turn`. Not thread-safe.
std::function<OrderPieces(int32_t)> pipeline_pieces(const Graph& graph, std::span<const int32_t> placement,
                                                    int32_t devices, std::span<const int32_t> stage,
                                                    PipelineSchedule schedule, std::span<const int32_t> turn,
                                                    const PipelineOrder& orders);

}  // namespace trinity
