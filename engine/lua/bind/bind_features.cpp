#include "lua/bind/module.h"
#include "lua/bind/option_reader.h"

namespace trinity::lua {
namespace {

/// The data of an array argument that must have `length` entries.
template <class Struct, class Value>
Value* out_arg(lua_State* L, int index, Magic magic, const char* name, size_t length) {
  auto* array = struct_arg<Struct>(L, index, magic, name, "an array");
  TRINITY_CHECK_EQ(static_cast<size_t>(array->length), length);
  return reinterpret_cast<Value*>(array + 1);
}

double* doubles_out(lua_State* L, int index, const char* name, size_t length) {
  return out_arg<trinity_double_array, double>(L, index, Magic::double_array, name, length);
}

int32_t* integers_out(lua_State* L, int index, const char* name, size_t length) {
  return out_arg<trinity_int32_array, int32_t>(L, index, Magic::int32_array, name, length);
}

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

/// Pushes { { name =, first =, count = }, ... }, first from 1.
void push_columns(lua_State* L, const std::vector<UnitFeatures::Columns>& columns) {
  lua_newtable(L);
  for (size_t i = 0; i < columns.size(); ++i) {
    lua_newtable(L);
    set_field(L, "name", columns[i].name);
    set_field(L, "first", columns[i].first + 1);
    set_field(L, "count", columns[i].count);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
}

void push_names(lua_State* L, const std::vector<std::string>& names) {
  lua_newtable(L);
  for (size_t i = 0; i < names.size(); ++i) {
    lua_pushlstring(L, names[i].data(), names[i].size());
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
}

int features_summary(lua_State* L) {
  const auto& self = object_arg<BoundFeatures>(L, 1);
  lua_newtable(L);
  set_field(L, "units", self.units.size());
  set_field(L, "width", self.features.width);
  set_field(L, "type_count", self.features.type_count);
  set_field(L, "edges", static_cast<double>(self.units.edges.size()));
  push_columns(L, self.features.columns);
  lua_setfield(L, -2, "columns");
  push_names(L, self.features.type_names);
  lua_setfield(L, -2, "type_names");
  return 1;
}

/// features:values(out): [units][width] row by row.
int features_values(lua_State* L) {
  const auto& values = object_arg<BoundFeatures>(L, 1).features.values;
  std::copy(values.begin(), values.end(), doubles_out(L, 2, "out", values.size()));
  return 0;
}

/// features:types(out): the type of every unit, from 1.
int features_types(lua_State* L) {
  const auto& types = object_arg<BoundFeatures>(L, 1).features.type;
  int32_t* out = integers_out(L, 2, "out", types.size());
  for (const int32_t type : types) *out++ = type + 1;
  return 0;
}

/// features:position(out): the share of the graph's work before the middle of every unit.
int features_position(lua_State* L) {
  const auto& position = object_arg<BoundFeatures>(L, 1).position;
  std::copy(position.begin(), position.end(), doubles_out(L, 2, "out", position.size()));
  return 0;
}

/// features:edges(from, to, bytes): the edges between units, sorted.
int features_edges(lua_State* L) {
  const auto& edges = object_arg<BoundFeatures>(L, 1).units.edges;
  int32_t* from = integers_out(L, 2, "from", edges.size());
  int32_t* to = integers_out(L, 3, "to", edges.size());
  double* bytes = doubles_out(L, 4, "bytes", edges.size());
  for (const auto& edge : edges) {
    *from++ = edge.from + 1;
    *to++ = edge.to + 1;
    *bytes++ = static_cast<double>(edge.bytes);
  }
  return 0;
}

/// features:costs(time_s, output_bytes): of every unit, without scaling.
int features_costs(lua_State* L) {
  const auto& self = object_arg<BoundFeatures>(L, 1);
  const auto& bytes = self.units.output_bytes;
  std::copy(self.time_s.begin(), self.time_s.end(),
            doubles_out(L, 2, "time_s", self.time_s.size()));
  std::copy(bytes.begin(), bytes.end(), doubles_out(L, 3, "output_bytes", bytes.size()));
  return 0;
}

constexpr luaL_Reg kFeatures[] = {TRINITY_BIND("costs", features_costs),
                                  TRINITY_BIND("summary", features_summary),
                                  TRINITY_BIND("values", features_values),
                                  TRINITY_BIND("types", features_types),
                                  TRINITY_BIND("edges", features_edges),
                                  TRINITY_BIND("position", features_position),
                                  {nullptr, nullptr}};
constexpr luaL_Reg kFeaturesFunctions[] = {TRINITY_BIND("features", features_new),
                                           {nullptr, nullptr}};

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
