#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace trinity {

struct ClusterSpec;

/// A resource that routes occupy: a direction of a link, a half-duplex link, or a limited switch.
struct Channel {
  double bandwidth_bytes_per_s = 0;
  int32_t link = -1;  ///< index in the description; -1: a switch
  int32_t limit = -1;  ///< index of that switch in the description; -1: a link
  bool back = false;  ///< from the link's second end to its first
};

/// The channels of a route, in order: a view of one or two parts of the tables of Routes, which
/// must outlive it. Immutable.
class Route {
 public:
  /// Channel numbers within a piece of the cluster, and their translation to the cluster's numbers.
  struct Part {
    std::span<const int32_t> crossed;
    const int32_t* channels = nullptr;
  };

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = int32_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const int32_t*;
    using reference = const int32_t&;

    Iterator() = default;
    Iterator(const Part& first, const Part& second, size_t at)
        : first_(first), second_(second), at_(at) {}
    reference operator*() const {
      const bool in_first = at_ < first_.crossed.size();
      const Part& part = in_first ? first_ : second_;
      return part.channels[part.crossed[in_first ? at_ : at_ - first_.crossed.size()]];
    }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    Part first_, second_;
    size_t at_ = 0;
  };

  Route() = default;
  explicit Route(const Part& only) : first_(only) {}
  Route(const Part& first, const Part& second) : first_(first), second_(second) {}
  size_t size() const { return first_.crossed.size() + second_.crossed.size(); }
  bool empty() const { return size() == 0; }
  Iterator begin() const { return {first_, second_, 0}; }
  Iterator end() const { return {first_, second_, size()}; }

 private:
  Part first_, second_;
};

/// Latency of a route (sum over its links) and bandwidth (minimum over its channels).
struct Wire {
  double latency_s = 0, bandwidth_bytes_per_s = 0;
};

/// The links of a cluster and the routes between every two devices: fewest devices on the way
/// (devices forward only if no switch leads there), fewest links, then the widest bottleneck, then
/// the smallest latency; ties: first link in the description. The routes from one device form a
/// tree. Immutable and thread-safe.
///
/// If one switch holds the cluster together, the parts that remain without it (the machines) are
/// pieces. A route between two pieces is a way to the switch and a way from it, and equal pieces
/// share one table, so memory grows with the links and with the squared sizes of different pieces.
/// The best way from the switch may depend on the latency and bandwidth with which a route arrives
/// there; tables have one way per such pair.
class Routes {
 public:
  /// Requires a checked description. Throws ArgumentError for two devices without a route,
  /// LimitError if the routes are too many and too long to list. split = false: one piece, whatever
  /// the cluster.
  explicit Routes(const ClusterSpec& spec, bool split = true);

  /// The channels of the links in order (there, back; half duplex one), then of the limited
  /// switches.
  const std::vector<Channel>& channels() const { return channels_; }
  /// Between two devices; 0 and 0 from a device to itself.
  Wire wire(int32_t from, int32_t to) const;
  /// Empty from a device to itself.
  Route route(int32_t from, int32_t to) const;
  /// Calls visit(index) for every different link between two devices, and possibly for one that
  /// leads from a device to the switch and back into its own piece.
  template <class Visit>
  void for_each_wire(Visit visit) const;
  /// The piece of a device, the table of that piece, and the device's number in it.
  int32_t piece(int32_t device) const { return piece_[device]; }
  int32_t table(int32_t device) const { return piece_of(device).table; }
  int32_t number(int32_t device) const { return number_[device]; }
  /// Size of the tables in numbers, for memory estimates.
  size_t stored() const;

 private:
  friend class RouteFinder;

  /// The contribution of a link to a route that crosses it in one direction.
  struct Hop {
    double latency_s, bandwidth_bytes_per_s;
  };
  /// Lists of numbers, stored one after the other.
  struct Lists {
    std::vector<int32_t> first = {0}, numbers;
    std::span<const int32_t> operator[](size_t i) const {
      const auto begin = static_cast<size_t>(first[i]);
      return {numbers.data() + begin, static_cast<size_t>(first[i + 1]) - begin};
    }
  };
  /// Routes that equal pieces share. Devices are numbered 0, 1, ... within their piece.
  struct Table {
    int32_t devices = 0;
    std::vector<Wire> wires;      ///< [from * devices + to]
    Lists inside;                 ///< channels, [from * devices + to]
    std::vector<int32_t> arrival;  ///< by device: index in arrivals_ of its arrival at the switch
    Lists out;                    ///< channels to the switch, by device
    bool one_way = false;         ///< the way from the switch does not depend on the arrival
    Lists in, in_hops;  ///< channels and hops from the switch, [arrival * devices + device]
    std::vector<Hop> hops;
  };
  struct Piece {
    int32_t table = 0;
    size_t channels = 0;  ///< start of its channels in channel_numbers_
  };

  Wire onward(Wire wire, const Table& target, int32_t arrival, int32_t number) const;
  const Piece& piece_of(int32_t device) const { return pieces_[piece_[device]]; }
  /// Index of the way from the switch to device `number`.
  static size_t way_in(const Table& table, int32_t arrival, int32_t number) {
    return static_cast<size_t>(table.one_way ? 0 : arrival) * static_cast<size_t>(table.devices) +
           static_cast<size_t>(number);
  }
  Route::Part part(const Piece& piece, std::span<const int32_t> crossed) const {
    return {crossed, channel_numbers_.data() + piece.channels};
  }

  std::vector<Channel> channels_;
  std::vector<Table> tables_;
  std::vector<Piece> pieces_;
  std::vector<Wire> arrivals_;  ///< the distinct ones at the switch
  std::vector<int32_t> piece_, number_;  ///< [device]: its piece, its number there
  std::vector<int32_t> channel_numbers_;
};

template <class Visit>
void Routes::for_each_wire(Visit visit) const {
  for (const Table& table : tables_)
    for (size_t at = 0; at < table.wires.size(); ++at)
      if (at % (static_cast<size_t>(table.devices) + 1) != 0) visit(table.wires[at]);
  if (pieces_.size() < 2) return;
  for (const Table& table : tables_)
    for (size_t a = 0; a < arrivals_.size(); ++a)
      for (int32_t b = 0; b < table.devices; ++b)
        visit(onward(arrivals_[a], table, static_cast<int32_t>(a), b));
}

}  // namespace trinity
