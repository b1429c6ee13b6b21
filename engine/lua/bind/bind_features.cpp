#include "learn/agent_options.h"
#include "lua/bind/module.h"
#include "lua/bind/option_list.h"
#include "lua/bind/option_reader.h"

namespace trinity::lua {
namespace {

/// True if `vocabulary` asks for one numbering of types over all graphs, the default.
bool shared_vocabulary(Fields& fields) {
  const auto word = fields.string("vocabulary", "shared");
  if (word != "shared" && word != "graph")
    throw ArgumentError("field 'vocabulary': unknown value '{}'{} (known: shared, graph)", word,
                        suggestion(word, {"shared", "graph"}));
  return word == "shared";
}

/// features(problem, options) -> features; options: seed, vocabulary, and the feature_options().
auto features_new(lua_State* L, const BoundProblem& of, Options<"features"> fields) {
  const auto& problem = *of.problem;
  const auto seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  auto options = feature_options(L, fields, {});
  options.shared_types = shared_vocabulary(fields);
  fields.refuse_unknown();
  auto bound = std::make_shared<BoundFeatures>();
  bound->units = make_unit_graph(problem.graph());
  bound->features = unit_features(problem, bound->units, options, seed);
  bound->position = work_position(problem, bound->units);
  bound->time_s = unit_times_s(problem, bound->units);
  return bound;
}

auto features_summary(const BoundFeatures& self) {
  const auto& features = self.features;
  const auto column = [](const UnitFeatures::Columns& columns) {
    return record("name", columns.name, "first", columns.first + 1, "count", columns.count);
  };
  return record("units", self.units.size(), "width", features.width, "type_count", features.type_count, "edges",
                self.units.edges.size(), "columns", list_of(features.columns, column), "type_names", features.type_names);
}

/// features:values(out): [units][width] row by row.
void features_values(lua_State* L, const BoundFeatures& self) { fill_numbers(L, 2, "out", self.features.values); }

/// features:types(out): the type of every unit, from 1.
void features_types(lua_State* L, const BoundFeatures& self) { fill_from_1(L, 2, "out", self.features.type); }

/// features:position(out): the share of the graph's work before the middle of every unit.
void features_position(lua_State* L, const BoundFeatures& self) { fill_numbers(L, 2, "out", self.position); }

/// features:edges(from, to, bytes): the edges between units, sorted.
void features_edges(lua_State* L, const BoundFeatures& self) {
  const auto& edges = self.units.edges;
  fill_from_1(L, 2, "from", list_of(edges, &UnitGraph::Edge::from));
  fill_from_1(L, 3, "to", list_of(edges, &UnitGraph::Edge::to));
  fill_numbers(L, 4, "bytes", list_of(edges, &UnitGraph::Edge::bytes));
}

/// features:costs(time_s, output_bytes): of every unit, without scaling.
void features_costs(lua_State* L, const BoundFeatures& self) {
  fill_numbers(L, 2, "time_s", self.time_s);
  fill_numbers(L, 3, "output_bytes", self.units.output_bytes);
}

constexpr luaL_Reg kFeatures[] = {
    TRINITY_BIND("costs", features_costs), TRINITY_BIND("summary", features_summary),
    TRINITY_BIND("values", features_values), TRINITY_BIND("types", features_types),
    TRINITY_BIND("edges", features_edges), TRINITY_BIND("position", features_position)};
constexpr luaL_Reg kFeaturesFunctions[] = {TRINITY_BIND("features", features_new)};

}  // namespace

FeatureOptions feature_options(lua_State* L, Fields& fields, FeatureOptions options) {
  read_fields(L, fields, options.node2vec.dimensions,
              [&](const OptionReader& reader) { each_feature_option(options, reader); });
  return options;
}

namespace {

AgentOptions read_preset(const std::string& name) {
  if (name == "default") return {};
  if (name == "paper") return AgentOptions::paper();
  if (name == "code") return AgentOptions::code();
  if (name == "scratch") return AgentOptions::scratch();
  throw ArgumentError("unknown preset '{}'{} (known: default, paper, code, scratch)", name,
                      suggestion(name, {"default", "paper", "code", "scratch"}));
}

/// agent_options() -> the agent's options but for preset and seed, as OptionList has them; options of
/// node2vec are "node2vec.NAME"
int agent_option_list(lua_State* L) {
  const AgentOptions options;
  lua_newtable(L);
  each_option(options, OptionList{L});
  return 1;
}

/// check_agent(options, ranks): refuses what agent() would, before anything is computed.
void agent_check(lua_State* L, Options<"agent options"> fields) {
  const auto options = agent_options_arg(L, fields);
  fields.refuse_unknown();
  options.check(static_cast<int>(integer_arg(L, 2, "ranks", 1, 1 << 20)));
}

constexpr luaL_Reg kLearnFunctions[] = {TRINITY_BIND("check_agent", agent_check),
                                        TRINITY_BIND("agent_options", agent_option_list)};

}  // namespace

AgentOptions agent_options_arg(lua_State* L, Fields& fields) {
  AgentOptions options = read_preset(fields.string("preset", "default"));
  options.seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  read_fields(L, fields, options.features.node2vec.dimensions,
              [&](const OptionReader& reader) { each_option(options, reader); });
  return options;
}

void open_features(lua_State* L) {
  register_functions(L, kFeaturesFunctions);
  register_type<BoundFeatures>(L, kFeatures);
  register_functions(L, kLearnFunctions);
}

}  // namespace trinity::lua
