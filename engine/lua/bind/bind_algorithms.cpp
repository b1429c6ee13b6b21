#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/index.h"
#include "graph/algorithms.h"
#include "graph/cuts.h"
#include "graph/operator_types.h"
#include "graph/units.h"
#include "lua/bind/module.h"

// Traversal and algorithms of graphs (graph/algorithms.h, graph/cuts.h) as methods of the bound
// graph. Operators, units and edges count from 1 here; what has an entry an operator or edge comes
// as an "int32 vector", which an int32 span views, or is written into a double array of the caller.

namespace trinity::lua {

using IndexVector = const std::vector<int32_t>;

template <>
inline constexpr const char* kTypeName<IndexVector> = "int32 vector";

namespace {

void add_one(std::vector<int32_t>& values) { for (int32_t& value : values) ++value; }

/// A vector of numbers from 0 as one of numbers from 1 (-1, none, as 0).
std::shared_ptr<IndexVector> counted_from_1(std::vector<int32_t> values) {
  add_one(values);
  return std::make_shared<IndexVector>(std::move(values));
}

/// A list of operators at `index`, not empty.
std::vector<int32_t> operators_arg(lua_State* L, int index, const char* name, const Graph& graph) {
  table_arg(L, index, name);
  std::vector<int32_t> operators;
  for_each(L, index, [&](int i) {
    const double value = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
    if (!(value >= 1 && value <= graph.operator_count()) || value != std::floor(value))
      throw WrongArgument(index, name, "entry {}: expected an operator from 1 to {}, got {}", i, graph.operator_count(),
                          type_name(L, -1));
    operators.push_back(static_cast<int32_t>(value) - 1);
  });
  if (operators.empty()) throw WrongArgument(index, name, "expected at least one operator");
  return operators;
}

/// A double array to write into, which must have `count` entries.
std::span<double> output_arg(lua_State* L, int index, const char* name, int32_t count) {
  const auto out = numbers_arg(L, index, name);
  if (out.size() != at(count))
    throw WrongArgument(index, name, "expected {} entries, got {}", count, out.size());
  return out;
}

/// One of `names` at `index`, as its position.
size_t choice_arg(lua_State* L, int index, const char* name,
                  const std::vector<std::string>& names) {
  const auto text = string_arg(L, index, name);
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end())
    throw WrongArgument(index, name, "unknown value '{}'{} (known: {})", text, suggestion(text, names),
                        fmt::join(names, ", "));
  return static_cast<size_t>(found - names.begin());
}

/// vector:span(out): points a fresh int32 span at the vector, which then lives as long as the span,
/// closed or not.
void vector_span(lua_State* L) {
  const auto vector = handle_arg<IndexVector>(L, 1);
  const auto& values = *vector;
  auto* out = struct_arg<trinity_int32_span>(L, 2, Magic::int32_span, "out", "an int32 span");
  if (out->data) throw WrongArgument(2, "out", "this span points at an array already");
  push_object(L, vector);
  keep_with(L, 2);
  out->data = values.data();
  out->length = static_cast<int32_t>(values.size());
}

/// graph:find(name) -> operator, or nil
std::optional<int32_t> graph_find(const Graph& graph, Text<"name"> name) {
  const int32_t found = graph.find(name);
  return found < 0 ? std::nullopt : std::optional(found + 1);
}

/// graph:suggestion(name) -> ", did you mean '...'?" with the nearest operator's name, or ""
auto graph_suggestion(const Graph& graph, Text<"name"> name) {
  return suggestion(name, list_of(graph.operators(), [](const Operator& op) { return op.name; }));
}

/// graph:unit(unit) -> list of its operators
auto graph_unit(lua_State* L, const Graph& graph) {
  const auto unit = integer_arg(L, 2, "unit", 1, graph.unit_count());
  return from_1(graph.unit(static_cast<int32_t>(unit) - 1));
}

/// Offsets of the edges of every operator, one more at the end.
template <class Degree>
std::vector<int32_t> offsets(const Graph& graph, Degree degree) {
  std::vector<int32_t> first{0};
  for (int32_t v = 0; v < graph.operator_count(); ++v)
    first.push_back(first.back() + static_cast<int32_t>(degree(v, graph.csr())));
  return first;
}

/// Per operator in turn, what `value` says of the edges that it reads, by their numbers.
template <class Value>
std::vector<int32_t> of_in_edges(const Graph& graph, Value value) {
  const auto& csr = graph.csr();
  auto next = offsets(graph, [](int32_t v, const auto& g) { return boost::in_degree(v, g); });
  std::vector<int32_t> values(at(graph.edge_count()));
  const auto [first, last] = boost::edges(csr);
  int32_t number = 0;
  for (auto edge = first; edge != last; ++edge, ++number)
    values[next[boost::target(*edge, csr)]++] = value(boost::source(*edge, csr), number);
  return values;
}

std::vector<int32_t> targets(const Graph& graph) {
  std::vector<int32_t> values;
  const auto [first, last] = boost::edges(graph.csr());
  for (auto edge = first; edge != last; ++edge) values.push_back(boost::target(*edge, graph.csr()));
  return values;
}

/// graph:numbers(which) -> int32 vector. 'depth' and 'unit' have an entry an operator; the others
/// are the graph in compressed rows: edges of operator v are first[v] to first[v + 1] - 1 in
/// 'target'; those that it reads are in_first[v] to in_first[v + 1] - 1 in 'in_source' and, as
/// their numbers among the former, in 'in_edge'.
std::shared_ptr<IndexVector> graph_numbers(lua_State* L, const Graph& graph) {
  const auto out = [](int32_t v, const auto& g) { return boost::out_degree(v, g); };
  const auto in = [](int32_t v, const auto& g) { return boost::in_degree(v, g); };
  switch (choice_arg(L, 2, "which", {"depth", "unit", "first", "target", "in_first", "in_source", "in_edge"})) {
    case 0:  // a length, which does not count from 1
      return std::make_shared<IndexVector>(graph.depth().begin(), graph.depth().end());
    case 1:
      return counted_from_1({graph.units().begin(), graph.units().end()});
    case 2:
      return counted_from_1(offsets(graph, out));
    case 3:
      return counted_from_1(targets(graph));
    case 4:
      return counted_from_1(offsets(graph, in));
    case 5:
      return counted_from_1(of_in_edges(graph, [](int32_t source, int32_t) { return source; }));
    default:
      return counted_from_1(of_in_edges(graph, [](int32_t, int32_t edge) { return edge; }));
  }
}

int64_t output_bytes(const Graph& graph, const Operator& op) {
  int64_t bytes = 0;
  for (const int32_t tensor : op.outputs) bytes += graph.tensor(tensor).bytes;
  return bytes;
}

/// graph:values(which, out): writes one number per operator ('edge_bytes': an edge) into a double
/// array; NaN for the time of an operator that was not measured.
void graph_values(lua_State* L, const Graph& graph) {
  const auto which =
      choice_arg(L, 2, "which",
                 {"flops", "output_bytes", "parameter_bytes", "measured_time_s", "persistent_bytes",
                  "workspace_bytes", "activation_bytes", "edge_bytes"});
  const bool edges = which == 7;
  const auto out =
      output_arg(L, 3, "out", edges ? graph.edge_count() : graph.operator_count()).data();
  if (edges) {
    const auto [first, last] = boost::edges(graph.csr());
    double* slot = out;
    for (auto edge = first; edge != last; ++edge)
      *slot++ = static_cast<double>(graph.tensor(graph.csr()[*edge].tensor).bytes);
    return;
  }
  for (int32_t v = 0; v < graph.operator_count(); ++v) {
    const auto& op = graph.op(v);
    if (which == 0) out[v] = op.flops;
    if (which == 1) out[v] = static_cast<double>(output_bytes(graph, op));
    if (which == 2) out[v] = static_cast<double>(op.parameter_bytes());
    if (which == 3) out[v] = op.measured() ? op.measured_time_s : std::nan("");
    if (which == 4) out[v] = static_cast<double>(op.persistent_bytes);
    if (which == 5) out[v] = static_cast<double>(op.workspace_bytes);
    if (which == 6) out[v] = is_variable(op) ? 0 : static_cast<double>(output_bytes(graph, op));
  }
}

/// graph:topological_order(kind) -> int32 vector of operators
std::shared_ptr<IndexVector> graph_topological_order(lua_State* L, const Graph& graph) {
  const auto kind = choice_arg(L, 2, "kind", {"number", "depth_first", "breadth_first"});
  if (kind == 1) return counted_from_1(depth_first_order(graph));
  if (kind == 2) return counted_from_1(breadth_first_order(graph));
  std::vector<int32_t> order(at(graph.operator_count()));
  std::iota(order.begin(), order.end(), 0);
  return counted_from_1(std::move(order));
}

/// graph:critical_path(time_s, transfer_s or nil, start_s, tail_s) -> list of operators, length in
/// seconds; all four are double arrays, the last two are written
auto graph_critical_path(lua_State* L, const Graph& graph) {
  const auto time_s = numbers_arg(L, 2, "time_s");
  std::span<const double> transfer_s;
  if (!lua_isnoneornil(L, 3)) transfer_s = numbers_arg(L, 3, "transfer_s");
  const auto start_s = output_arg(L, 4, "start_s", graph.operator_count());
  const auto tail_s = output_arg(L, 5, "tail_s", graph.operator_count());
  const auto path = longest_path(graph, time_s, transfer_s);
  std::copy(path.start_s.begin(), path.start_s.end(), start_s.begin());
  std::copy(path.tail_s.begin(), path.tail_s.end(), tail_s.begin());
  return std::tuple(from_1(path.operators), path.length_s);
}

/// graph:min_cut(sources, sinks, backward, capacity or nil) -> capacity, bytes, source side (list)
auto graph_min_cut(lua_State* L, const Graph& graph) {
  const auto sources = operators_arg(L, 2, "sources", graph);
  const auto sinks = operators_arg(L, 3, "sinks", graph);
  CutOptions options;
  options.backward = parse_choice<BackwardEdges>(string_arg(L, 4, "backward"));
  if (!lua_isnoneornil(L, 5)) options.edge_capacity = numbers_arg(L, 5, "capacity");
  auto cut = min_cut(graph, sources, sinks, options);
  return std::tuple(cut.capacity, cut.bytes, from_1(std::move(cut.source_side)));
}

/// graph:unit_edges() -> how many edges lie between colocation units; graph:unit_edges(from, to,
/// bytes): writes them, sorted, into arrays of that length
int graph_unit_edges(lua_State* L, const Graph& graph) {
  const auto units = make_unit_graph(graph);
  if (lua_isnoneornil(L, 2)) return push_number(L, static_cast<double>(units.edges.size()));
  fill_from_1(L, 2, "from", list_of(units.edges, &UnitGraph::Edge::from));
  fill_from_1(L, 3, "to", list_of(units.edges, &UnitGraph::Edge::to));
  fill_numbers(L, 4, "bytes", list_of(units.edges, &UnitGraph::Edge::bytes));
  return 0;
}

constexpr luaL_Reg kVector[] = {TRINITY_BIND("span", vector_span)};
constexpr luaL_Reg kGraph[] = {
    TRINITY_BIND("find", graph_find), TRINITY_BIND("suggestion", graph_suggestion), TRINITY_BIND("unit", graph_unit),
    TRINITY_BIND("numbers", graph_numbers), TRINITY_BIND("values", graph_values),
    TRINITY_BIND("topological_order", graph_topological_order), TRINITY_BIND("critical_path", graph_critical_path),
    TRINITY_BIND("min_cut", graph_min_cut), TRINITY_BIND("unit_edges", graph_unit_edges)};

}  // namespace

void open_algorithms(lua_State* L) {
  register_type<IndexVector>(L, kVector);
  add_methods<const Graph>(L, kGraph);
}

}  // namespace trinity::lua
