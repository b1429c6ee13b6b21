#include "lua/module.h"

namespace trinity::lua {
namespace {

Node2VecOptions read_node2vec(lua_State* L, const Node2VecOptions& preset) {
  Fields fields(L, -1, "node2vec");
  const auto count = [&](const char* key, int32_t fallback) {
    return static_cast<int32_t>(fields.integer(key, fallback, 1, 100000));
  };
  Node2VecOptions options = preset;
  options.dimensions = count("dimensions", preset.dimensions);
  options.walk_length = count("walk_length", preset.walk_length);
  options.walks_per_node = count("walks_per_node", preset.walks_per_node);
  options.window = count("window", preset.window);
  options.epochs = count("epochs", preset.epochs);
  options.negatives = count("negatives", preset.negatives);
  options.return_parameter = fields.number("return_parameter", preset.return_parameter);
  options.in_out_parameter = fields.number("in_out_parameter", preset.in_out_parameter);
  options.learning_rate = fields.number("learning_rate", preset.learning_rate);
  fields.refuse_unknown();
  if (!(options.return_parameter > 0) || !(options.in_out_parameter > 0))
    throw ArgumentError("node2vec: return_parameter and in_out_parameter must be positive");
  return options;
}

AgentOptions read_preset(const std::string& name) {
  if (name == "default") return {};
  if (name == "paper") return AgentOptions::paper();
  throw ArgumentError(fmt::format("unknown preset '{}'{} (known: default, paper)", name,
                                  suggestion(name, {"default", "paper"})));
}

AgentOptions read_options(lua_State* L, int index) {
  Fields fields(L, index, "agent options");
  AgentOptions options = read_preset(fields.string("preset", "default"));
  const auto count = [&](const char* key, int32_t fallback, int32_t low) {
    return static_cast<int32_t>(fields.integer(key, fallback, low, 1000000));
  };
  options.seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  options.groups = count("groups", options.groups, 0);
  options.samples = count("samples", options.samples, 1);
  options.epochs = count("epochs", options.epochs, 1);
  options.noise_steps = count("noise_steps", options.noise_steps, 0);
  options.hidden = count("hidden", options.hidden, 1);
  options.learning_rate = fields.number("learning_rate", options.learning_rate);
  options.clip = fields.number("clip", options.clip);
  options.entropy_weight = fields.number("entropy_weight", options.entropy_weight);
  options.gradient_norm = fields.number("gradient_norm", options.gradient_norm);
  options.temperature = fields.number("temperature", options.temperature);
  options.tanh_constant = fields.number("tanh_constant", options.tanh_constant);
  options.baseline_n = fields.number("baseline_n", options.baseline_n);
  options.noise_amplitude = fields.number("noise_amplitude", options.noise_amplitude);
  options.switch_probability = fields.number("switch_probability", options.switch_probability);
  options.contiguity = fields.number("contiguity", options.contiguity);
  options.dropout = fields.number("dropout", options.dropout);
  options.normalise_advantage = fields.boolean("normalise_advantage", options.normalise_advantage);
  options.order_groups = fields.boolean("order_groups", options.order_groups);
  options.features = feature_options(L, fields, options.features);
  fields.refuse_unknown();
  return options;
}

/// agent(problem, options) -> agent
int agent_new(lua_State* L) {
  auto& bound = object_arg<BoundProblem>(L, 1);
  table_arg(L, 2, "options");
  push_object(L, std::make_shared<Agent>(bound.problem, read_options(L, 2), shared_pool()));
  return 1;
}

/// Writes placements into the list of int32 arrays at `index`.
void fill_placements(lua_State* L, int index, std::span<const int32_t> placements) {
  const size_t count = lua_objlen(L, index);
  TRINITY_CHECK_LT(size_t{0}, count);
  const auto n = static_cast<int32_t>(placements.size() / count);
  for_each(L, index, [&](int i) {
    auto* out = struct_arg<trinity_int32_array>(L, lua_gettop(L), Magic::int32_array, "placements",
                                                "an int32 array");
    TRINITY_CHECK_EQ(out->length, n);
    auto* device = reinterpret_cast<int32_t*>(out + 1);
    const int32_t* from = placements.data() + static_cast<size_t>(i - 1) * static_cast<size_t>(n);
    for (int32_t k = 0; k < n; ++k) device[k] = from[k] + 1;
  });
}

/// agent:sample(placements): draws a batch into a list of `samples` int32 arrays.
int agent_sample(lua_State* L) {
  auto& agent = object_arg<Agent>(L, 1);
  table_arg(L, 2, "placements");
  const auto count = static_cast<int32_t>(lua_objlen(L, 2));
  if (count != agent.options().samples)
    throw WrongArgument(2, "placements",
                        fmt::format("expected {} arrays, got {}", agent.options().samples, count));
  fill_placements(L, 2, agent.sample());
  return 0;
}

/// agent:greedy(placements): the most likely placement, into a list of one array.
int agent_greedy(lua_State* L) {
  auto& agent = object_arg<Agent>(L, 1);
  table_arg(L, 2, "placements");
  fill_placements(L, 2, agent.greedy());
  return 0;
}

/// agent:update(rewards) -> report; rewards is a double array of the batch's length.
int agent_update(lua_State* L) {
  auto& agent = object_arg<Agent>(L, 1);
  const auto* rewards =
      struct_arg<trinity_double_array>(L, 2, Magic::double_array, "rewards", "a double array");
  const auto report = agent.update(
      {reinterpret_cast<const double*>(rewards + 1), static_cast<size_t>(rewards->length)});
  lua_newtable(L);
  set_field(L, "mean_reward", report.mean_reward);
  set_field(L, "baseline", report.baseline);
  set_field(L, "entropy_groups", report.entropy_groups);
  set_field(L, "entropy_devices", report.entropy_devices);
  set_field(L, "clipped_share", report.clipped_share);
  set_field(L, "gradient_norm", report.gradient_norm);
  return 1;
}

int agent_summary(lua_State* L) {
  const auto& agent = object_arg<Agent>(L, 1);
  lua_newtable(L);
  set_field(L, "groups", agent.groups());
  set_field(L, "samples", agent.options().samples);
  set_field(L, "parameters", static_cast<double>(agent.parameter_count()));
  return 1;
}

int learn_describe_torch(lua_State* L) {
  const auto description = describe_torch();
  lua_pushstring(L, description.text.c_str());
  lua_pushboolean(L, description.slow);
  return 2;
}

constexpr luaL_Reg kAgent[] = {TRINITY_BIND("sample", agent_sample),
                               TRINITY_BIND("greedy", agent_greedy),
                               TRINITY_BIND("update", agent_update),
                               TRINITY_BIND("summary", agent_summary),
                               {nullptr, nullptr}};
constexpr luaL_Reg kFunctions[] = {TRINITY_BIND("agent", agent_new),
                                   TRINITY_BIND("describe_torch", learn_describe_torch),
                                   {nullptr, nullptr}};

}  // namespace

FeatureOptions feature_options(lua_State* L, Fields& fields, const FeatureOptions& preset) {
  FeatureOptions options = preset;
  options.depth_waves =
      static_cast<int32_t>(fields.integer("depth_waves", preset.depth_waves, 0, 64));
  options.raw_time = fields.boolean("raw_time", preset.raw_time);
  options.mean_output_size = fields.boolean("mean_output_size", preset.mean_output_size);
  options.depth = fields.boolean("depth_feature", preset.depth);
  if (fields.push_table("node2vec")) {
    options.node2vec = read_node2vec(L, preset.node2vec);
    lua_pop(L, 1);
  }
  return options;
}

void open_learn(lua_State* L) {
  register_functions(L, kFunctions);
  register_type<Agent>(L, kAgent);
}

}  // namespace trinity::lua
