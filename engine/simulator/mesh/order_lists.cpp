// Assignment of operator lists to devices, and their order.
#include <algorithm>

#include "base/index.h"
#include "simulator/order_engine.h"

namespace trinity {

/// Checks that every operator except members is in one list, on the list's device.
bool OrderEngine::place_lists() {
  list_of_.assign(at(problem_->operators()), -1);
  index_of_.resize(list_of_.size());
  list_device_.clear();
  int32_t listed = 0;
  for (int32_t list = 0; list < pieces_->lists(); ++list) {
    const int32_t begin = pieces_->list_first[list], end = pieces_->list_first[at(list) + 1];
    if (begin == end) return false;
    const int32_t first = pieces_->operators[begin];
    list_device_.push_back(placement_[first]);
    for (int32_t i = begin; i < end; ++i, ++listed) {
      const int32_t op = pieces_->operators[i];
      if (list_of_[op] >= 0 || member(op) || placement_[op] != list_device_.back() ||
          problem_->once(op) != problem_->once(first))
        return false;
      list_of_[op] = list;
      index_of_[op] = i - begin;
    }
  }
  for (int32_t op = 0; op < problem_->operators(); ++op) listed += member(op);
  return listed == problem_->operators();
}

/// Positions of all pieces. Returns false unless a device runs every list once per micro-batch, and
/// operators that run once come last.
bool OrderEngine::order_lists() {
  constexpr int32_t kNone = -1;
  base_.assign(at(pieces_->lists()) * at(micros_), kNone);
  list_rank_.assign(at(pieces_->lists()), kNone);
  turns_.clear();
  turns_of_.assign(devices_.size(), {kNone, 0});
  reached_.resize(at(micros_));
  for (int32_t d = 0; d < pieces_->devices(); ++d) {
    const auto pieces = std::span(pieces_->pieces)
                            .subspan(at(pieces_->piece_first[d]),
                                     at(pieces_->piece_first[at(d) + 1] - pieces_->piece_first[d]));
    int32_t rank = 0, position = 0;
    for (const auto& piece : pieces)
      if (piece.micro_batch == micros_ - 1) list_rank_[piece.list] = rank++;
    std::fill(reached_.begin(), reached_.end(), kNone);
    bool once = false, turns = false;
    for (const auto& [list, micro] : pieces) {
      auto& base = base_[list_cell(list, micro)];
      if (base != kNone || list_device_[list] != d) return false;
      base = position;
      turns = turns || list_rank_[list] <= reached_[micro];
      reached_[micro] = list_rank_[list];
      const bool runs_once = problem_->once(pieces_->operators[pieces_->list_first[list]]);
      if (runs_once ? micro != micros_ - 1 : once) return false;
      once = once || runs_once;
      for (int32_t k = 0; runs_once && k < micros_; ++k) base_[list_cell(list, k)] = position;
      position += pieces_->list_first[at(list) + 1] - pieces_->list_first[list];
    }
    devices_[d].positions = position;
    if (turns) find_turns(d, rank);
  }
  return std::find(base_.begin(), base_.end(), kNone) == base_.end();
}

/// For a device with several orders of its lists: which list precedes which in all micro-batches.
void OrderEngine::find_turns(int32_t device, int32_t lists) {
  turns_of_[device] = {static_cast<int32_t>(turns_.size()), lists};
  std::vector<int32_t> list(at(lists));
  for (int32_t i = 0; i < pieces_->lists(); ++i)
    if (list_device_[i] == device && list_rank_[i] >= 0) list[at(list_rank_[i])] = i;
  for (const int32_t a : list)
    for (const int32_t b : list) {
      bool always = a != b;
      for (int32_t k = 0; k < micros_ && always; ++k)
        always = base_[list_cell(a, k)] < base_[list_cell(b, k)];
      turns_.push_back(always);
    }
}

}  // namespace trinity
