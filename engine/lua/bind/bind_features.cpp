#include "lua/bind/module.h"
#include "lua/bind/option_reader.h"

namespace trinity::lua {
namespace {

/// Whether `vocabulary` asks for one numbering of types over all graphs, the default.
bool shared_vocabulary(Fields& fields) {
  const auto word = fields.string("vocabulary", "shared");
  if (word != "shared" && word != "graph")
    throw ArgumentError(
        fmt::format("field 'vocabulary': unknown word '{}'{} (known: shared, graph)", word,
                    suggestion(word, {"shared", "graph"})));
  return word == "shared";
}

/// features(problem, options) -> features; options: seed, vocabulary, those of feature_options().
int features_new(lua_State* L) {
  const auto& problem = *object_arg<BoundProblem>(L, 1, "problem").problem;
  table_arg(L, 2, "options");
  Fields fields(L, 2, "features");
  const auto seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  auto options = feature_options(L, fields, {});
  options.shared_types = shared_vocabulary(fields);
  fields.refuse_unknown();
  auto bound = std::make_shared<BoundFeatures>();
  bound->units = make_unit_graph(problem.graph());
  bound->features = unit_features(problem, bound->units, options, seed);
  bound->position = work_position(problem, bound->units);
  bound->time_s = unit_times_s(problem, bound->units);
  push_object(L, std::move(bound));
  return 1;
}

/// Pushes { name =, first =, count = }, first from 1.
void push_columns(lua_State* L, const UnitFeatures::Columns& columns) {
  lua_newtable(L);
  set_field(L, "name", columns.name);
  set_field(L, "first", columns.first + 1);
  set_field(L, "count", columns.count);
}

int features_summary(lua_State* L) {
  const auto& self = object_arg<BoundFeatures>(L, 1);
  lua_newtable(L);
  set_field(L, "units", self.units.size());
  set_field(L, "width", self.features.width);
  set_field(L, "type_count", self.features.type_count);
  set_field(L, "edges", static_cast<double>(self.units.edges.size()));
  push_list(L, self.features.columns, [L](const auto& columns) { push_columns(L, columns); });
  lua_setfield(L, -2, "columns");
  push_list(L, self.features.type_names, [L](const auto& name) { push_text(L, name); });
  lua_setfield(L, -2, "type_names");
  return 1;
}

/// features:values(out): [units][width] row by row.
int features_values(lua_State* L) {
  fill_numbers(L, 2, "out", object_arg<BoundFeatures>(L, 1).features.values);
  return 0;
}

/// features:types(out): the type of every unit, from 1.
int features_types(lua_State* L) {
  fill_from_1(L, 2, "out", object_arg<BoundFeatures>(L, 1).features.type);
  return 0;
}

/// features:position(out): the share of the graph's work before the middle of every unit.
int features_position(lua_State* L) {
  fill_numbers(L, 2, "out", object_arg<BoundFeatures>(L, 1).position);
  return 0;
}

/// features:edges(from, to, bytes): the edges between units, sorted.
int features_edges(lua_State* L) {
  const auto& edges = object_arg<BoundFeatures>(L, 1).units.edges;
  std::vector<int32_t> from, to;
  std::vector<double> bytes;
  for (const auto& edge : edges) {
    from.push_back(edge.from);
    to.push_back(edge.to);
    bytes.push_back(static_cast<double>(edge.bytes));
  }
  fill_from_1(L, 2, "from", from);
  fill_from_1(L, 3, "to", to);
  fill_numbers(L, 4, "bytes", bytes);
  return 0;
}

/// features:costs(time_s, output_bytes): of every unit, without scaling.
int features_costs(lua_State* L) {
  const auto& self = object_arg<BoundFeatures>(L, 1);
  fill_numbers(L, 2, "time_s", self.time_s);
  fill_numbers(L, 3, "output_bytes", self.units.output_bytes);
  return 0;
}

constexpr luaL_Reg kFeatures[] = {
    TRINITY_BIND("costs", features_costs),   TRINITY_BIND("summary", features_summary),
    TRINITY_BIND("values", features_values), TRINITY_BIND("types", features_types),
    TRINITY_BIND("edges", features_edges),   TRINITY_BIND("position", features_position)};
constexpr luaL_Reg kFeaturesFunctions[] = {TRINITY_BIND("features", features_new)};

}  // namespace

FeatureOptions feature_options(lua_State* L, Fields& fields, FeatureOptions options) {
  read_fields(L, fields, options.node2vec.dimensions,
              [&](const OptionReader& reader) { each_feature_option(options, reader); });
  return options;
}

void open_features(lua_State* L) {
  register_functions(L, kFeaturesFunctions);
  register_type<BoundFeatures>(L, kFeatures);
}

}  // namespace trinity::lua
