#include "graph/cuts.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <utility>

#include "base/index.h"
#include "base/stop.h"

namespace trinity {
namespace {

enum Side : int32_t { kStart = 0, kSink = 1, kOpen = 2 };

/// A tensor and its distinct readers.
struct Flow {
  int32_t producer;
  int64_t bytes;
  std::vector<int32_t> readers;
};

/// The tensors with readers, by producer and number.
std::vector<Flow> flows_of(const Graph& graph) {
  const auto& csr = graph.csr();
  std::vector<Flow> flows;
  std::vector<std::pair<int32_t, int32_t>> reads;  // tensor, reader
  StopPoll stop;
  for (int32_t v = 0; v < graph.operator_count(); ++v, stop.step()) {
    reads.clear();
    const auto [first, last] = boost::out_edges(v, csr);
    for (auto edge = first; edge != last; ++edge)
      reads.emplace_back(csr[*edge].tensor, boost::target(*edge, csr));
    std::sort(reads.begin(), reads.end());
    int32_t previous = -1;
    for (const auto& [tensor, reader] : reads) {
      if (tensor != previous) flows.push_back({v, graph.tensor(tensor).bytes, {}});
      flows.back().readers.push_back(reader);
      previous = tensor;
    }
  }
  return flows;
}

/// A property map that polls the stop flag, to interrupt Boost.Graph's maximum flow, which has no
/// visitor but reads this map constantly. Throws Interrupted from get().
template <class Map>
class PolledMap {
 public:
  using key_type = typename boost::property_traits<Map>::key_type;
  using value_type = typename boost::property_traits<Map>::value_type;
  using reference = value_type;
  using category = boost::read_write_property_map_tag;

  /// `reads` counts over all copies of the map and must outlive them.
  PolledMap(Map map, uint32_t& reads) : map_(map), reads_(&reads) {}

  friend value_type get(const PolledMap& map, const key_type& key) {
    if ((++*map.reads_ & 0xfff) == 0) poll_stop();
    return get(map.map_, key);
  }
  friend void put(const PolledMap& map, const key_type& key, const value_type& value) {
    put(map.map_, key, value);
  }

 private:
  Map map_;
  uint32_t* reads_;
};

/// The max-flow network. Capacities are integers; an arc and its reverse are adjacent, as
/// Boost.Graph requires.
class Network {
 public:
  Network() : graph_(2) {}

  int32_t add_node() { return static_cast<int32_t>(boost::add_vertex(graph_)); }
  void add_arc(int32_t from, int32_t to, int64_t capacity) {
    stop_.step();
    if (from == to || capacity == 0) return;
    const auto arc = boost::add_edge(at(from), at(to), graph_).first;
    const auto back = boost::add_edge(at(to), at(from), graph_).first;
    graph_[arc].capacity = capacity;
    reverse_.emplace_back(arc, back);
  }

  int64_t solve() {
    for (const auto& [arc, back] : reverse_) {
      graph_[arc].reverse = back;
      graph_[back].reverse = arc;
    }
    uint32_t reads = 0;
    return boost::push_relabel_max_flow(graph_, kStart, kSink, boost::get(&Arc::capacity, graph_),
                                        PolledMap(boost::get(&Arc::residual, graph_), reads),
                                        boost::get(&Arc::reverse, graph_),
                                        boost::get(boost::vertex_index, graph_));
  }

  /// [node]: flow could still reach it from the source.
  std::vector<char> source_side() const {
    std::vector<char> reached(boost::num_vertices(graph_), 0);
    std::vector<size_t> stack{kStart};
    reached[kStart] = 1;
    while (!stack.empty()) {
      const size_t node = stack.back();
      stack.pop_back();
      const auto [first, last] = boost::out_edges(node, graph_);
      for (auto arc = first; arc != last; ++arc) {
        const size_t to = boost::target(*arc, graph_);
        if (graph_[*arc].residual == 0 || reached[to]) continue;
        reached[to] = 1;
        stack.push_back(to);
      }
    }
    return reached;
  }

 private:
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  struct Arc {
    int64_t capacity = 0, residual = 0;
    Traits::edge_descriptor reverse;
  };
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Arc> graph_;
  std::vector<std::pair<Traits::edge_descriptor, Traits::edge_descriptor>> reverse_;
  StopPoll stop_;
};

class Cutter {
 public:
  Cutter(const Graph& graph, const CutOptions& options) : graph_(graph), options_(options) {}

  Cut cut(std::span<const int32_t> sources, std::span<const int32_t> sinks) {
    flows_ = flows_of(graph_);
    if (!options_.edge_capacity.empty()) scale_capacities();
    assign_sides(sources, sinks);
    for (int32_t v = 0; v < graph_.operator_count(); ++v)
      if (node_[v] == kOpen) node_[v] = network_.add_node();
    options_.edge_capacity.empty() ? add_tensors() : add_edges();
    const int64_t flow = network_.solve();
    auto result = read_cut();
    if (options_.edge_capacity.empty())
      TRINITY_CHECK_EQ(static_cast<double>(flow), result.capacity);
    return result;
  }

 private:
  bool counted() const { return options_.backward == BackwardEdges::counted; }
  bool forbidden() const { return options_.backward == BackwardEdges::forbidden; }
  template <class Visit>
  void each_edge(Visit visit) const {
    size_t number = 0;
    const auto [first, last] = boost::edges(graph_.csr());
    for (auto edge = first; edge != last; ++edge, ++number)
      visit(number, boost::source(*edge, graph_.csr()), boost::target(*edge, graph_.csr()));
  }
  /// True if the target of an edge must be on the source's side if its source is.
  bool tied_forward(size_t edge) const {
    return !options_.edge_capacity.empty() && std::isinf(options_.edge_capacity[edge]);
  }
  /// True if the source of an edge must be on the source's side if its target is.
  bool tied_backward(size_t edge) const { return forbidden() || (counted() && tied_forward(edge)); }

  void scale_capacities() {
    const auto given = options_.edge_capacity;
    if (given.size() != at(graph_.edge_count()))
      throw ArgumentError("expected {} capacities, one per edge, got {}", graph_.edge_count(), given.size());
    long double sum = 0;
    bool whole = true;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!(given[i] >= 0))
        throw ArgumentError("edge {} has capacity {}, expected 0 or more", i + 1, given[i]);
      if (std::isinf(given[i])) continue;
      sum += given[i];
      whole = whole && given[i] == std::floor(given[i]);
    }
    constexpr int kBits = 59;
    const bool as_given = sum == 0 || (whole && sum < std::ldexp(1.0L, kBits));
    const int shift = as_given ? 0 : kBits - 1 - std::ilogb(sum);
    for (const double value : given)
      capacity_.push_back(
          std::isinf(value)
              ? 0
              : static_cast<int64_t>(std::ldexp(static_cast<long double>(value), shift) + 0.5L));
  }

  void assign_sides(std::span<const int32_t> sources, std::span<const int32_t> sinks) {
    const size_t count = at(graph_.operator_count());
    std::vector<int32_t> source_of(count, -1), sink_of(count, -1);
    for (const int32_t v : sources) source_of[v] = v;
    for (const int32_t v : sinks) {
      if (source_of[v] == v)
        throw ArgumentError("operator '{}' is both a source and a sink", graph_.op(v).name);
      sink_of[v] = v;
    }
    close(kStart, source_of);
    for (const int32_t v : sinks)
      if (source_of[v] >= 0)
        throw ArgumentError("no cut can separate '{}' from '{}'", graph_.op(source_of[v]).name, graph_.op(v).name);
    close(kSink, sink_of);
    node_.assign(count, kOpen);
    for (size_t v = 0; v < count; ++v) {
      if (source_of[v] >= 0) node_[v] = kStart;
      if (sink_of[v] >= 0) node_[v] = kSink;
    }
  }

  /// Extends a side over edges that must not be cut. `origin`: the given operator that caused it, -1
  /// outside the side.
  void close(Side side, std::vector<int32_t>& origin) const {
    const auto& csr = graph_.csr();
    std::vector<int32_t> stack;
    for (int32_t v = 0; v < graph_.operator_count(); ++v)
      if (origin[v] >= 0) stack.push_back(v);
    const auto take = [&](int32_t v, int32_t with) {
      if (origin[v] >= 0) return;
      origin[v] = origin[with];
      stack.push_back(v);
    };
    while (!stack.empty()) {
      const int32_t v = stack.back();
      stack.pop_back();
      const auto [out, out_end] = boost::out_edges(v, csr);
      for (auto edge = out; edge != out_end; ++edge)
        if (side == kStart ? tied_forward(at(edge->idx)) : tied_backward(at(edge->idx)))
          take(boost::target(*edge, csr), v);
      const auto [in, in_end] = boost::in_edges(v, csr);
      for (auto edge = in; edge != in_end; ++edge)
        if (side == kSink ? tied_forward(at((*edge).idx)) : tied_backward(at((*edge).idx)))
          take(boost::source(*edge, csr), v);
    }
  }

  void add_tensors() {
    for (const auto& flow : flows_) unlimited_ += flow.bytes * (counted() ? 2 : 1);
    ++unlimited_;
    for (const auto& flow : flows_) {
      const int32_t producer = node_[flow.producer];
      std::vector<int32_t> readers;
      for (const int32_t reader : flow.readers) readers.push_back(node_[reader]);
      if (producer != kSink) add_group(producer, readers, flow.bytes, true);
      if (producer != kStart && counted()) add_group(producer, readers, flow.bytes, false);
    }
    if (forbidden())
      each_edge([&](size_t, int32_t from, int32_t to) {
        network_.add_arc(node_[to], node_[from], unlimited_);
      });
  }

  /// Adds arcs that cost `bytes` once if `one` is on one side and any of `many` on the other: `one`
  /// on the source's side if the bytes leave it, else on the sink's.
  void add_group(int32_t one, std::vector<int32_t> many, int64_t bytes, bool leaving) {
    std::sort(many.begin(), many.end());
    many.erase(std::unique(many.begin(), many.end()), many.end());
    // A member fixed on the other side decides for all.
    const int32_t decided = leaving ? kSink : kStart;
    if (std::binary_search(many.begin(), many.end(), decided)) many = {decided};
    const auto arc = [&](int32_t from, int32_t to, int64_t capacity) {
      leaving ? network_.add_arc(from, to, capacity) : network_.add_arc(to, from, capacity);
    };
    if (many.size() == 1) return arc(one, many[0], bytes);
    if (bytes == 0) return;
    const int32_t middle = network_.add_node();
    arc(one, middle, bytes);
    for (const int32_t member : many) arc(middle, member, unlimited_);
  }

  void add_edges() {
    for (const int64_t capacity : capacity_) unlimited_ += capacity * (counted() ? 2 : 1);
    ++unlimited_;
    each_edge([&](size_t edge, int32_t from, int32_t to) {
      const int64_t capacity = tied_forward(edge) ? unlimited_ : capacity_[edge];
      network_.add_arc(node_[from], node_[to], capacity);
      if (options_.backward == BackwardEdges::free) return;
      network_.add_arc(node_[to], node_[from], forbidden() ? unlimited_ : capacity);
    });
  }

  Cut read_cut() const {
    const auto reached = network_.source_side();
    const auto before = [&](int32_t v) { return reached[node_[v]] != 0; };
    Cut cut;
    for (int32_t v = 0; v < graph_.operator_count(); ++v)
      if (before(v)) cut.source_side.push_back(v);
    int64_t backward_bytes = 0;
    for (const auto& flow : flows_) {
      const bool from = before(flow.producer);
      const bool crosses = std::any_of(flow.readers.begin(), flow.readers.end(),
                                       [&](int32_t reader) { return before(reader) != from; });
      if (crosses) (from ? cut.bytes : backward_bytes) += flow.bytes;
    }
    if (options_.edge_capacity.empty()) {
      cut.capacity = static_cast<double>(cut.bytes + (counted() ? backward_bytes : 0));
      return cut;
    }
    each_edge([&](size_t edge, int32_t from, int32_t to) {
      if (before(from) != before(to) && (before(from) || counted()))
        cut.capacity += options_.edge_capacity[edge];
    });
    return cut;
  }

  const Graph& graph_;
  const CutOptions& options_;
  std::vector<Flow> flows_;
  std::vector<int64_t> capacity_;  // [edge], an integer
  std::vector<int32_t> node_;      // [operator]: its node in the network
  Network network_;
  int64_t unlimited_ = 0;  // more than the sum of all finite capacities
};

}  // namespace

Cut min_cut(const Graph& graph, std::span<const int32_t> sources, std::span<const int32_t> sinks,
            const CutOptions& options) {
  return Cutter(graph, options).cut(sources, sinks);
}

}  // namespace trinity
