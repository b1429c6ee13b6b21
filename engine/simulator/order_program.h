#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cluster/collectives.h"
#include "simulator/metrics.h"
#include "simulator/problem.h"
#include "strategy/pieces.h"
#include "strategy/quotient.h"

namespace trinity {

/// An order in pieces, compiled for OrderEngine: operators in segments; transfers and collectives with their durations,
/// queues and readers. Not thread-safe; working memory is kept between orders.
class OrderProgram {
 protected:
  static constexpr size_t kMostQueues = size_t{1} << 24;

  /// Entries of a list.
  struct Range {
    int32_t begin = 0, end = 0;
  };
  template <class T>
  static std::span<const T> in(const std::vector<T>& list, Range range) {
    return std::span(list).subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.end - range.begin));
  }
  /// The entries from `begin` on.
  template <class T>
  static Range since(int32_t begin, const std::vector<T>& list) {
    return {begin, static_cast<int32_t>(list.size())};
  }
  /// Operators of a list that run back to back once the inputs of the first have arrived.
  struct Segment {
    Range operators;             // in pieces.operators
    Range needs, emits;          // incoming tensors in needs_; in emits_
    int64_t length_ns, busy_ns;  // until the device is free; until the last operator has ended
    bool once;
  };
  /// An operator of a segment that starts a transfer or provides a collective's input.
  struct Emit {
    int64_t offset_ns;  // of its end, from the segment's start
    int32_t op;
    bool sends, free;   // sends to other devices; takes no time
  };
  /// A member of a collective with an input.
  struct Feed {
    int32_t collective;
    bool last;  // accumulates: fed by the last micro-batch alone
  };
  /// An output that is sent to a device.
  struct Route {
    int32_t op, output, from, to;
    bool last;
    int64_t bytes, wire_ns;
    Range queues, feeds;
  };
  struct Group {
    int64_t duration_ns = 0;
    int32_t missing = 0;  // edges into all members
    bool once = false;
    Range queues, devices, feeds, sends;  // feeds, sends: for all members
  };

  explicit OrderProgram(const Cluster& cluster) : prices_(cluster) {}

  /// Requires problem_ to micros_. Returns false if the engine cannot run the order, or if it is faulty.
  bool compile();
  /// Positions of all pieces. Returns false unless a device runs every list once per micro-batch, and
  /// operators that run once come last.
  bool order_lists();

  /// Requires two lists of one device. True if the first precedes the second in all micro-batches.
  bool always_before(int32_t a, int32_t b) const {
    const auto& [begin, lists] = turns_of_[static_cast<size_t>(list_device_[a])];
    const int32_t first = list_rank_[a], second = list_rank_[b];
    return begin < 0 ? first < second : turns_[static_cast<size_t>(begin + first * lists + second)];
  }
  bool accumulates(int32_t op, int32_t reader) const {
    return micros_ > 1 && problem_->once(reader) && !problem_->once(op);
  }
  int32_t collectives() const { return static_cast<int32_t>(problem_->graph().collectives().size()); }
  const Collective& collective_at(int32_t c) const {
    return problem_->graph().collectives()[static_cast<size_t>(c)];
  }
  int32_t collective_of(int32_t op) const { return problem_->collective_of(op); }
  bool member(int32_t op) const { return collective_of(op) >= 0; }
  int32_t cluster_device(int32_t device) const { return quotient_ ? quotient_->devices[device] : device; }
  int64_t cost_ns(int32_t op) const { return problem_->cost_ns(cluster_device(placement_[op]), op); }
  Range routes_of(int32_t op) const { return {route_first_[op], route_first_[static_cast<size_t>(op) + 1]}; }
  bool sends(int32_t op) const { return route_first_[op] < route_first_[static_cast<size_t>(op) + 1]; }
  bool list_once(int32_t list) const { return problem_->once(pieces_->operators[pieces_->list_first[list]]); }
  size_t list_cell(int32_t list, int32_t micro) const {
    return static_cast<size_t>(micro) * list_device_.size() + static_cast<size_t>(list);
  }
  size_t rows() const { return groups_.size() + routes_.size(); }

  const Problem* problem_ = nullptr;
  const OrderPieces* pieces_ = nullptr;
  const Quotient* quotient_ = nullptr;
  std::span<const int32_t> placement_;
  int32_t micros_ = 1;

  std::vector<int32_t> list_of_, index_of_;   // per operator; -1 for members
  std::vector<int32_t> list_device_;          // per list
  std::vector<int32_t> base_;                 // [micro][list]: position of its first operator
  std::vector<int32_t> positions_;            // per device: of all its pieces
  std::vector<int32_t> segment_first_;        // per list, and the end
  std::vector<Segment> segments_;
  std::vector<int64_t> offset_ns_;  // per operator in lists, from its segment's start
  std::vector<int32_t> needs_;      // 2 * row, + 1: of all micro-batches
  std::vector<Emit> emits_;
  std::vector<Feed> feeds_;
  std::vector<Route> routes_;
  std::vector<Range> feeds_of_;  // per operator: feeds of members on its device
  std::vector<Group> groups_;
  std::vector<int32_t> queues_, group_devices_, group_sends_;
  size_t queue_count_ = 0;  // upper limit of numbers in queues_
  std::vector<int32_t> row_place_;  // per row: where its cells are within a micro-batch
  std::vector<DeviceMetrics> simulated_;
  int32_t transfers_ = 0;

 private:
  bool place_lists();
  void find_turns(int32_t device, int32_t lists);
  bool find_groups();
  bool price(int32_t collective);
  const CollectiveGroup& group_of(int32_t collective);
  bool find_routes();
  void place_rows();
  void count(const Route& route);
  void join_members(int32_t collective);
  Range add_feeds(int32_t op, int32_t device, int32_t output);
  bool find_segments(int32_t list);
  bool find_needs(int32_t op);
  void add_queues(int32_t from, int32_t to);

  CollectiveGroups prices_;
  std::vector<std::optional<CollectiveGroup>> quotient_groups_;  // by Quotient::price, on demand
  std::vector<int32_t> list_rank_;                               // per list: sequence in the last micro-batch
  std::vector<std::pair<int32_t, int32_t>> turns_of_;  // per device: start in turns_ (or -1), and its lists
  std::vector<bool> turns_;           // [list_rank_][list_rank_]: first always precedes second
  std::vector<int32_t> reached_;      // per micro-batch, while lists are ordered
  std::vector<int32_t> needed_by_;    // per need: the last list that has it
  std::vector<int32_t> route_first_;  // per operator, and the end
  std::vector<int32_t> ring_;
};

}  // namespace trinity
