#include <cmath>
#include <iterator>

#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "graph/replicas.h"
#include "graph/training.h"
#include "lua/bind/module.h"

namespace trinity::lua {
namespace {

using SharedGraph = std::shared_ptr<const Graph>;

SharedGraph share(Graph graph) { return std::make_shared<const Graph>(std::move(graph)); }

/// The value on top of the stack as an attribute.
Attribute attribute(lua_State* L, const Owner& owner) {
  switch (lua_type(L, -1)) {
    case LUA_TNUMBER: {
      const double value = lua_tonumber(L, -1);
      const bool whole = value == std::floor(value) && std::abs(value) < 0x1p63;
      return whole ? Attribute(static_cast<int64_t>(value)) : Attribute(value);
    }
    case LUA_TSTRING:
      return std::string(lua_tostring(L, -1));
    case LUA_TTABLE:
      return integers(L, -1, owner);
    default:
      throw ArgumentError("{}: expected number, string or list of integers, got {}", owner.text(), type_name(L, -1));
  }
}

Attributes read_attributes(lua_State* L, const Owner& owner) {
  Attributes attributes;
  for_each_entry(L, -1, [&] {
    if (lua_type(L, -2) != LUA_TSTRING)
      throw ArgumentError("{}: attribute names are strings, got {}", owner.text(), type_name(L, -2));
    const std::string name = lua_tostring(L, -2);
    const auto of = [&] { return fmt::format("{}: attribute '{}'", owner.text(), name); };
    attributes[name] = attribute(L, of);
  });
  return attributes;
}

std::vector<int64_t> read_shape(lua_State* L, const Owner& owner) {
  const auto of = [&] { return owner.text() + ": field 'shape'"; };
  return integers(L, -1, of);
}

std::vector<Parameter> read_parameters(lua_State* L, const Owner& owner) {
  std::vector<Parameter> parameters;
  for_each(L, lua_gettop(L), [&](int i) {
    const auto of = [&] { return fmt::format("{}: parameter {}", owner.text(), i); };
    Fields fields(L, -1, of);
    Parameter parameter;
    parameter.name = fields.required_string("name");
    parameter.dtype = parse_dtype(fields.string("dtype", "float32"));
    parameter.trainable = fields.boolean("trainable", true);
    fields.required_table("shape", [&] { parameter.shape = read_shape(L, of); });
    fields.refuse_unknown();
    for (const int64_t extent : parameter.shape)
      if (extent < 1 || extent > int64_t{1} << 40)
        throw ArgumentError("{}: extent {} in its shape", fields.owner(), extent);
    parameters.push_back(std::move(parameter));
  });
  return parameters;
}

Tensor read_tensor(lua_State* L, const Owner& owner) {
  Fields fields(L, -1, owner);
  Tensor tensor;
  tensor.name = fields.string("name", "");
  tensor.dtype = parse_dtype(fields.string("dtype", "float32"));
  tensor.gradient = fields.boolean("gradient", true);
  tensor.bytes = fields.integer("bytes", 0, 0, int64_t{1} << 50);
  fields.table("shape", [&] { tensor.shape = read_shape(L, owner); });
  fields.refuse_unknown();
  return tensor;
}

/// FLOP from the operator's type where the script states none.
double default_flops(const GraphBuilder& builder, const Operator& op,
                     const std::vector<Tensor>& outputs) {
  std::vector<const Tensor*> inputs, written;
  for (const int32_t input : op.inputs) inputs.push_back(&builder.tensor(input));
  for (const auto& output : outputs) written.push_back(&output);
  return forward_flops(op, inputs, written);
}

int64_t bytes_of(const Tensor& tensor) {
  double elements = 1;
  for (const int64_t extent : tensor.shape) elements *= static_cast<double>(extent);
  return tensor.shape.empty() || elements > 1e15
             ? tensor.bytes
             : static_cast<int64_t>(elements) * dtype_bytes(tensor.dtype);
}

/// The tensors on top of the stack, { number = } each.
std::vector<int32_t> read_inputs(lua_State* L, const GraphBuilder& builder, const Owner& owner) {
  std::vector<int32_t> inputs;
  for_each(L, lua_gettop(L), [&](int i) {
    bool is_tensor = lua_istable(L, -1);
    double number = 0;
    if (is_tensor) {
      lua_pushliteral(L, "number");
      lua_rawget(L, -2);  // a script's __index could close the builder
      is_tensor = lua_type(L, -1) == LUA_TNUMBER;
      number = lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
    if (!is_tensor)
      throw ArgumentError("{}: input {}: expected a tensor, got {}", owner.text(), i, type_name(L, -1));
    if (!(number >= 1 && number <= builder.tensor_count() && number == std::floor(number)))
      throw ArgumentError("{}: no tensor number {}", owner.text(), number);
    inputs.push_back(static_cast<int32_t>(number) - 1);
  });
  return inputs;
}

std::vector<Tensor> read_outputs(lua_State* L, const Owner& owner) {
  std::vector<Tensor> outputs;
  for_each(L, lua_gettop(L), [&](int i) {
    const auto of = [&] { return fmt::format("{}: output {}", owner.text(), i); };
    outputs.push_back(read_tensor(L, of));
    outputs.back().bytes = bytes_of(outputs.back());
  });
  return outputs;
}

/// "no operator 'x', did you mean 'y'?"
std::string no_operator(const GraphBuilder& builder, const std::string& name) {
  std::vector<std::string> names;
  for (int32_t i = 0; i < builder.operator_count(); ++i) names.push_back(builder.op(i).name);
  return fmt::format("no operator '{}'{}", name, suggestion(name, names));
}

int32_t find_operator(const GraphBuilder& builder, const std::string& name, const std::string& owner) {
  const int32_t found = builder.find(name);
  if (found < 0) throw ArgumentError("{}: {}", owner, no_operator(builder, name));
  return found;
}

Phase parse_phase(const std::string& name, const std::string& owner) try {
  return parse_choice<Phase>(name);
} catch (const ArgumentError& error) {
  throw ArgumentError("{}: {}", owner, error.what());
}

/// A time in seconds that is finite and not negative; -1 where it is absent.
double time_s(Fields& fields, const char* key) {
  const auto value = fields.number(key);
  if (value && !(*value >= 0 && std::isfinite(*value)))
    throw ArgumentError("{}: field '{}': expected a finite number from 0, got {}", fields.owner(), key, *value);
  return value.value_or(-1);
}

/// The times and the memory of an operator, which has other names for them where it is by hand.
void read_measured(Fields& fields, bool by_hand, Operator& op) {
  const char* memory = by_hand ? "memory_bytes" : "persistent_bytes";
  op.persistent_bytes = fields.integer(memory, 0, 0, int64_t{1} << 50);
  if (by_hand) {
    op.measured_time_s = time_s(fields, "time_s");
    op.measured_backward_time_s = time_s(fields, "backward_time_s");
  } else {
    op.measured_time_s = fields.number("measured_time_s", -1);
    op.measured_backward_time_s = fields.number("measured_backward_time_s", -1);
  }
}

/// The operator that the fields describe, and its outputs.
std::pair<Operator, std::vector<Tensor>> read_operator(lua_State* L, Fields& fields, bool by_hand,
                                                       const GraphBuilder& builder) {
  std::pair<Operator, std::vector<Tensor>> read;
  auto& [op, outputs] = read;
  op.name = fields.awaited_string("name");
  op.type = by_hand ? fields.string("type", "Work") : fields.awaited_string("type");
  const auto owner = [&] { return fmt::format("operator '{}'", op.name); };
  const auto inputs_owner = [&] { return fmt::format("{}: {}", fields.owner(), owner()); };
  fields.table("inputs", [&] { op.inputs = read_inputs(L, builder, inputs_owner); });
  fields.table("attributes", [&] { op.attributes = read_attributes(L, owner); });
  fields.table("parameters", [&] { op.parameters = read_parameters(L, owner); });
  fields.table("outputs", [&] { outputs = read_outputs(L, owner); });
  op.extra_parameter_bytes = fields.integer("parameter_bytes", 0, 0, int64_t{1} << 50);
  op.workspace_bytes = fields.integer("workspace_bytes", 0, 0, int64_t{1} << 50);
  if (const auto phase = fields.string("phase")) op.phase = parse_phase(*phase, owner());
  if (const auto forward = fields.string("forward"))
    op.forward = find_operator(builder, *forward, owner() + ": field 'forward'");
  read_measured(fields, by_hand, op);
  op.traffic_bytes = fields.number("traffic_bytes", -1);
  const auto flops = fields.number("flops");
  fields.refuse_unknown();
  op.flops = flops.value_or(default_flops(builder, op, outputs));
  return read;
}

/// builder:add_operator({name=, type=, inputs=, outputs={{shape=, dtype=}, ...}, attributes=,
/// parameters=, flops=, phase='forward', forward= and colocate_with= operators' names, ...},
/// by_hand) -> the first output's tensor number, which others follow, nil where there are none.
/// by_hand: times and memory have the names of trinity.HandOperatorSpec, and a type may be missing.
int builder_add_operator(lua_State* L, GraphBuilder& builder) {
  lua_settop(L, 3);
  const bool by_hand = lua_toboolean(L, 3) != 0;
  Fields fields(L, 2, by_hand ? "builder:add_operator" : "builder:add");
  const auto colocated = fields.string("colocate_with");
  auto [op, outputs] = read_operator(L, fields, by_hand, builder);
  const int32_t other =
      colocated ? find_operator(builder, *colocated,
                                fmt::format("operator '{}': field 'colocate_with'", op.name))
                : -1;
  const int32_t id = builder.add_operator(std::move(op));
  if (other >= 0) builder.colocate(other, id);
  if (outputs.empty()) return 0;
  lua_pushinteger(L, builder.tensor_count() + 1);
  for (auto& output : outputs) builder.add_output(id, std::move(output));
  return 1;
}

/// A tensor of the builder at `index`, by its number from 1.
int32_t tensor_arg(lua_State* L, int index, const char* name, const GraphBuilder& builder) {
  if (builder.tensor_count() == 0)
    throw WrongArgument(index, name, "expected an operator's name: there are no tensors yet");
  return static_cast<int32_t>(integer_arg(L, index, name, 1, builder.tensor_count())) - 1;
}

/// An operator of the builder at `index`: its name, or the number of one of its output tensors.
int32_t endpoint_arg(lua_State* L, int index, const char* name, const GraphBuilder& builder) {
  if (lua_type(L, index) != LUA_TSTRING)
    return builder.tensor(tensor_arg(L, index, name, builder)).producer;
  const auto text = string_arg(L, index, name);
  const int32_t found = builder.find(text);
  if (found < 0) throw WrongArgument(index, name, no_operator(builder, text));
  return found;
}

/// builder:add_edge(from, to, size_bytes) -> number of the tensor that `to` reads: of a new output
/// of operator `from`, or, where `from` is a tensor, of that one, whose size may be left out.
int builder_add_edge(lua_State* L, GraphBuilder& builder) {
  const int32_t from = endpoint_arg(L, 2, "from", builder);
  const int32_t to = endpoint_arg(L, 3, "to", builder);
  if (from == to)
    throw WrongArgument(3, "to", "'{}' cannot read its own output", builder.op(to).name);
  const bool is_new = lua_type(L, 2) == LUA_TSTRING;
  int64_t size_bytes = -1;
  if (is_new || !lua_isnoneornil(L, 4))
    size_bytes = integer_arg(L, 4, "size_bytes", 0, int64_t{1} << 50);
  int32_t number = -1;
  if (is_new) {
    Tensor tensor;
    tensor.bytes = size_bytes;
    number = builder.add_output(from, std::move(tensor));
  } else {
    number = tensor_arg(L, 2, "from", builder);
    const int64_t held = builder.tensor(number).bytes;
    if (size_bytes >= 0 && size_bytes != held)
      throw WrongArgument(4, "size_bytes", "the tensor has {} bytes, got {}", held, size_bytes);
  }
  builder.read(to, number);
  return push_number(L, number + 1);
}

/// builder:serves(op, forward): the operator is a gradient of the forward operator, both by name
void builder_serves(GraphBuilder& builder, Text<"op"> op, Text<"forward"> forward) {
  builder.op(find_operator(builder, op, "serves")).forward = find_operator(builder, forward, "serves");
}

/// builder:collective{name=, kind=, algorithm='automatic', bytes=, members={operator names}}
void builder_collective(lua_State* L, GraphBuilder& builder) {
  Fields fields(L, 2, "collective");
  Collective collective;
  collective.name = fields.required_string("name");
  const auto owner = fmt::format("collective '{}'", collective.name);
  collective.kind = parse_choice<CollectiveKind>(fields.required_string("kind"));
  collective.algorithm = parse_choice<CollectiveAlgorithm>(fields.string("algorithm", "automatic"));
  collective.bytes = fields.integer("bytes", -1, 0, int64_t{1} << 50);
  if (collective.bytes < 0) throw ArgumentError(owner + ": field 'bytes' is missing");
  if (!fields.push_table("members")) throw ArgumentError(owner + ": field 'members' is missing");
  for_each(L, lua_gettop(L), [&](int i) {
    if (lua_type(L, -1) != LUA_TSTRING)
      throw ArgumentError("{}: member {}: expected an operator's name, got {}", owner, i, type_name(L, -1));
    collective.members.push_back(find_operator(builder, lua_tostring(L, -1), owner));
  });
  lua_pop(L, 1);
  fields.refuse_unknown();
  builder.add_collective(std::move(collective));
}

auto graph_training(lua_State* L, const Graph& graph) {
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) {
    lua_newtable(L);
    lua_replace(L, 2);
  }
  Fields fields(L, 2, "training");
  TrainingOptions options;
  options.colocate = parse_choice<TrainingOptions::Colocate>(fields.string("colocate", "forward"));
  options.optimiser = parse_choice<TrainingOptions::Optimiser>(fields.string("optimizer", "momentum"));
  if (const auto gradient = fields.string("gradient_dtype"))
    options.gradient = parse_dtype(*gradient);
  fields.refuse_unknown();
  return share(lower_to_training(graph, options));
}

/// The devices (0-based) of a placement of `graph` at `index`, whatever the cluster.
std::vector<int32_t> device_of_arg(lua_State* L, int index, const Graph& graph) {
  const auto given = placement_entries(L, index, graph);
  std::vector<int32_t> devices(given.begin(), given.end());
  for (int32_t& device : devices) {
    if (device < 1)
      throw ArgumentError("a placement names device {}, expected 1 or more", device);
    --device;
  }
  return devices;
}

/// graph:replicate({replicas=, bucket_bytes=, algorithm='automatic'}, placement or nil) -> graph,
/// origin (per operator: the 1-based one it copies, 0 for none), replica (per operator, from 0)
auto graph_replicate(lua_State* L, const Graph& graph) {
  lua_settop(L, 3);
  Fields fields(L, 2, "replicate");
  ReplicaOptions options;
  int32_t replicas = 0;
  fields.take("replicas", replicas, "bucket_bytes", options.bucket_bytes);
  options.algorithm = parse_choice<CollectiveAlgorithm>(fields.string("algorithm", "automatic"));
  fields.refuse_unknown();
  std::vector<int32_t> devices;
  if (!lua_isnil(L, 3)) devices = device_of_arg(L, 3, graph);
  options.device_of = devices;
  auto result = replicate(graph, replicas, options);
  return std::tuple(share(std::move(result.graph)), from_1(std::move(result.origin)), std::move(result.replica));
}

/// Field `stage`: the stage of every operator, an int32 array or a list of integers from `low`, as
/// numbers from 0.
std::vector<int32_t> stage_field(lua_State* L, Fields& fields, int64_t low) {
  fields.push_any("stage");
  auto stage = indices_arg(L, lua_gettop(L), fields.owner() + ": field 'stage'", low, static_cast<int64_t>(kMaxOperators));
  lua_pop(L, 1);
  return stage;
}

/// graph:recompute({stage=, eager=false}) -> graph, origin (per operator, from 1); stage 0: left as
/// it is.
auto graph_recompute(lua_State* L, const Graph& graph) {
  Fields fields(L, 2, "recompute");
  RecomputeOptions options;
  fields.take("eager", options.eager);
  const auto stage = stage_field(L, fields, 0);
  fields.refuse_unknown();
  auto result = recompute(graph, stage, options);
  return std::tuple(share(std::move(result.graph)), from_1(std::move(result.origin)));
}

/// graph:replicate_stages({stage=, replicas={...}, bucket_bytes=, algorithm=}, {graph or false per
/// stage}) -> graph, and per operator origin (from 1, 0 for an all-reduce), stage and replica (from
/// 1)
auto graph_replicate_stages(lua_State* L, const Graph& graph) {
  table_arg(L, 3, "at_share");
  Fields fields(L, 2, "replicate_stages");
  ReplicaOptions options;
  fields.take("bucket_bytes", options.bucket_bytes);
  options.algorithm = parse_choice<CollectiveAlgorithm>(fields.string("algorithm", "automatic"));
  const auto stage = stage_field(L, fields, 1);
  std::vector<int32_t> replicas;
  fields.required_table("replicas", [&] {
    for (const int64_t count : integers(L, -1, "replicate_stages: field 'replicas'"))
      replicas.push_back(static_cast<int32_t>(std::clamp<int64_t>(count, 0, int64_t{1} << 30)));
  });
  fields.refuse_unknown();
  for_each(L, 3, [&](int) {
    const bool there = lua_toboolean(L, -1);
    options.at_share.push_back(there ? &object_arg<const Graph>(L, lua_gettop(L)) : nullptr);
  });
  auto result = replicate_stages(graph, stage, replicas, options);
  return std::tuple(share(std::move(result.graph)), from_1(std::move(result.origin)), from_1(std::move(result.stage)),
                    from_1(std::move(result.replica)));
}

/// Samples that a graph takes at once: the first axis of its first source of data; 0: not known.
int64_t batch_size(const Graph& graph) {
  for (const auto& op : graph.operators())
    if (op.type == "Input" && !op.outputs.empty()) {
      const auto& shape = graph.tensor(op.outputs[0]).shape;
      return shape.empty() ? 0 : shape[0];
    }
  return 0;
}

/// Totals that describe a graph in one table.
auto graph_summary(const Graph& graph) {
  return record("name", graph.name(), "operators", graph.operator_count(), "edges", graph.edge_count(), "units",
                graph.unit_count(), "parameters", graph.parameter_count(), "active_parameters",
                graph.active_parameter_count(), "parameter_bytes", graph.parameter_bytes(), "flops", graph.flops(),
                "fingerprint", fmt::format("{:016x}", graph.fingerprint()), "training", graph.has_backward(),
                "batch_size", batch_size(graph));
}

/// Number of operators that read a tensor.
int32_t readers_of(const Graph& graph, int32_t tensor) {
  return static_cast<int32_t>(std::ranges::distance(graph.readers_of(tensor)));
}

/// The tensors that an operator reads (with their producers) or writes (with the number of readers).
auto tensors_of(const Graph& graph, const TensorNumbers& tensors, bool producers) {
  return list_of(tensors, [&](int32_t number) {
    const auto& tensor = graph.tensor(number);
    return record("name", tensor.name, "dtype", dtype_name(tensor.dtype), "bytes", tensor.bytes, "gradient",
                  tensor.gradient, producers ? "producer" : "readers",
                  producers ? tensor.producer + 1 : readers_of(graph, number), "shape", tensor.shape);
  });
}

/// graph:operator(i) -> a table describing operator i (1-based).
auto graph_operator(lua_State* L, const Graph& graph) {
  const auto& op =
      graph.op(static_cast<int32_t>(integer_arg(L, 2, "operator", 1, graph.operator_count())) - 1);
  const auto parameter = [](const Parameter& of) {
    return record("name", of.name, "dtype", dtype_name(of.dtype), "trainable", of.trainable, "shape", of.shape);
  };
  const auto where = [](bool there, auto value) { return there ? std::optional(value) : std::nullopt; };
  return record("name", op.name, "type", op.type, "phase", op.phase, "known", has_operator_rule(op.type),
                "flops", op.flops, "traffic_bytes", op.traffic_bytes, "parameter_bytes", op.parameter_bytes(),
                "persistent_bytes", op.persistent_bytes, "workspace_bytes", op.workspace_bytes, "measured_time_s",
                where(op.measured(), op.measured_time_s), "forward", where(op.forward >= 0, op.forward + 1), "collective",
                op.collective >= 0 ? std::optional(graph.collectives()[op.collective].name) : std::nullopt, "unit",
                op.unit + 1, "attributes", op.attributes, "parameters", list_of(op.parameters, parameter), "inputs",
                tensors_of(graph, op.inputs, true), "outputs", tensors_of(graph, op.outputs, false));
}

constexpr luaL_Reg kBuilder[] = {
    TRINITY_BIND("add_operator", builder_add_operator), TRINITY_BIND("add_edge", builder_add_edge),
    TRINITY_BIND("collective", builder_collective), TRINITY_BIND("serves", builder_serves),
    TRINITY_BIND("build", [](GraphBuilder& builder) { return share(builder.build()); })};
constexpr luaL_Reg kGraphMethods[] = {
    TRINITY_BIND("training", graph_training), TRINITY_BIND("replicate", graph_replicate),
    TRINITY_BIND("recompute", graph_recompute), TRINITY_BIND("replicate_stages", graph_replicate_stages),
    TRINITY_BIND("summary", graph_summary), TRINITY_BIND("operator", graph_operator),
    TRINITY_BIND("fold_backward", [](const Graph& graph) { return share(fold_backward(graph)); })};
constexpr luaL_Reg kGraphFunctions[] = {
    TRINITY_BIND("graph_builder", [](Text<"name"> name) { return std::make_shared<GraphBuilder>(name); }),
    TRINITY_BIND("operator_types", operator_types)};

}  // namespace

void open_graph(lua_State* L) {
  register_functions(L, kGraphFunctions);
  register_type<GraphBuilder>(L, kBuilder);
  register_type<const Graph>(L, kGraphMethods);
}

}  // namespace trinity::lua
