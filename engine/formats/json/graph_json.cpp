#include "formats/json/graph_json.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "base/words.h"
#include "formats/json/json_reader.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

constexpr const char* kFormat = "trinity.graph";
constexpr int kVersion = 1;
constexpr int64_t kMaxBytes = int64_t{1} << 50;  // GraphBuilder's limit per tensor
constexpr int64_t kMaxExtent = int64_t{1} << 50;

constexpr const char* kFileFields[] = {"format", "version", "name", "operators", "collectives"};
constexpr const char* kOperatorFields[] = {
    "name", "type", "phase", "inputs", "outputs", "attributes", "parameters", "flops", "unit",
    "traffic_bytes", "measured_time_s", "measured_backward_time_s", "forward", "parameter_bytes",
    "persistent_bytes", "workspace_bytes"};
constexpr const char* kOutputFields[] = {"name", "shape", "dtype", "bytes", "gradient"};
constexpr const char* kParameterFields[] = {"name", "shape", "dtype", "trainable"};
constexpr const char* kCollectiveFields[] = {"name", "kind", "algorithm", "bytes", "members"};

// Writing ---------------------------------------------------------------------------------------

/// A JSON string. `owner` is its name in errors.
std::string text_json(const std::string& text, const char* owner) {
  try {
    return printable_json(nlohmann::json(text).dump());
  } catch (const nlohmann::json::type_error&) {
    throw ArgumentError("{} {} is not UTF-8, which JSON requires", owner, in_quotes(text));
  }
}

/// The shortest number that reads back as the same double.
std::string number_json(double value, const char* owner) {
  if (!std::isfinite(value))
    throw ArgumentError("{} is {}, which JSON cannot represent", owner, value);
  return value == 0 && std::signbit(value) ? "-0.0" : fmt::format("{}", value);
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

struct AttributeWriter {
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const {
    if (std::isnan(value)) return R"({"float":"nan"})";
    if (std::isinf(value)) return value > 0 ? R"({"float":"inf"})" : R"({"float":"-inf"})";
    auto text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";  // reads back as a float
    return text;
  }
  std::string operator()(const std::string& value) const {
    try {
      return printable_json(nlohmann::json(value).dump());
    } catch (const nlohmann::json::type_error&) {
      return fmt::format(R"({{"hex":"{}"}})", hexadecimal(value));
    }
  }
  std::string operator()(const std::vector<int64_t>& values) const {
    return fmt::format("[{}]", fmt::join(values, ","));
  }
};

/// The fields of one object.
class ObjectWriter {
 public:
  void raw(const char* key, const std::string& json) {
    text_ += fmt::format(R"({}"{}":{})", text_.empty() ? "" : ",", key, json);
  }
  void text(const char* key, const std::string& value) { raw(key, text_json(value, key)); }
  void number(const char* key, double value) { raw(key, number_json(value, key)); }
  void integer(const char* key, int64_t value) { raw(key, fmt::format("{}", value)); }
  void shape(const std::vector<int64_t>& extents) {
    raw("shape", fmt::format("[{}]", fmt::join(extents, ",")));
  }
  void dtype(DType dtype) {
    if (dtype != DType::float32) text("dtype", dtype_name(dtype));
  }
  template <class Items, class Write>
  void list(const char* key, const Items& items, Write write) {
    if (items.empty()) return;
    std::vector<std::string> parts;
    parts.reserve(items.size());
    for (const auto& item : items) parts.push_back(write(item));
    raw(key, fmt::format("[{}]", fmt::join(parts, ",")));
  }
  std::string take() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {
    for (const auto& tensor : graph.tensors()) ++named_[tensor.name];
  }

  std::string write() const {
    std::string text = fmt::format("{{\n \"format\": \"{}\",\n \"version\": {},\n \"name\": {},\n",
                                   kFormat, kVersion, text_json(graph_.name(), "graph"));
    std::vector<std::string> lines;
    lines.reserve(graph_.operators().size());
    for (const auto& op : graph_.operators()) lines.push_back(operator_json(op));
    text += fmt::format(" \"operators\": [\n  {}\n ]", fmt::join(lines, ",\n  "));
    lines.clear();
    for (const auto& collective : graph_.collectives())
      lines.push_back(collective_json(collective));
    if (!lines.empty())
      text += fmt::format(",\n \"collectives\": [\n  {}\n ]", fmt::join(lines, ",\n  "));
    return text + "\n}\n";
  }

 private:
  std::string operator_json(const Operator& op) const {
    ObjectWriter object;
    object.text("name", op.name);
    object.text("type", op.type);
    if (op.phase != Phase::forward) object.text("phase", choice_name(op.phase));
    object.list("inputs", op.inputs, [&](int32_t tensor) { return tensor_reference(tensor); });
    size_t position = 0;
    object.list("outputs", op.outputs, [&](int32_t tensor) {
      return output_json(graph_.tensor(tensor), fmt::format("{}:{}", op.name, position++));
    });
    if (!op.attributes.empty()) object.raw("attributes", attributes_json(op.attributes));
    object.list("parameters", op.parameters, parameter_json);
    object.number("flops", op.flops);
    object.number("traffic_bytes", op.traffic_bytes);
    if (op.measured()) object.number("measured_time_s", op.measured_time_s);
    if (op.measured_backward_time_s >= 0)
      object.number("measured_backward_time_s", op.measured_backward_time_s);
    if (op.extra_parameter_bytes) object.integer("parameter_bytes", op.extra_parameter_bytes);
    if (op.persistent_bytes) object.integer("persistent_bytes", op.persistent_bytes);
    if (op.workspace_bytes) object.integer("workspace_bytes", op.workspace_bytes);
    if (op.forward >= 0) object.text("forward", graph_.op(op.forward).name);
    if (graph_.unit(op.unit).size() > 1) object.integer("unit", op.unit + 1);
    return object.take();
  }

  /// The tensor's name if it is unique, otherwise its number.
  std::string tensor_reference(int32_t tensor) const {
    const auto& name = graph_.tensor(tensor).name;
    return named_.at(name) == 1 ? text_json(name, "tensor") : fmt::format("{}", tensor + 1);
  }

  static std::string output_json(const Tensor& tensor, const std::string& default_name) {
    ObjectWriter object;
    if (tensor.name != default_name) object.text("name", tensor.name);
    if (!tensor.shape.empty()) object.shape(tensor.shape);
    object.dtype(tensor.dtype);
    if (tensor.shape.empty()) object.integer("bytes", tensor.bytes);
    if (!tensor.gradient) object.raw("gradient", "false");
    return object.take();
  }

  static std::string parameter_json(const Parameter& parameter) {
    ObjectWriter object;
    object.text("name", parameter.name);
    object.shape(parameter.shape);
    object.dtype(parameter.dtype);
    if (!parameter.trainable) object.raw("trainable", "false");
    return object.take();
  }

  static std::string attributes_json(const Attributes& attributes) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : attributes)
      parts.push_back(text_json(name, "attribute") + ":" + std::visit(AttributeWriter{}, value));
    return fmt::format("{{{}}}", fmt::join(parts, ","));
  }

  std::string collective_json(const Collective& collective) const {
    ObjectWriter object;
    object.text("name", collective.name);
    object.text("kind", choice_name(collective.kind));
    if (collective.algorithm != CollectiveAlgorithm::automatic)
      object.text("algorithm", choice_name(collective.algorithm));
    object.integer("bytes", collective.bytes);
    object.list("members", collective.members,
                [&](int32_t member) { return text_json(graph_.op(member).name, "operator"); });
    return object.take();
  }

  const Graph& graph_;
  std::unordered_map<std::string_view, int> named_;  // number of tensors per name
};

// Reading ---------------------------------------------------------------------------------------

/// Runs a builder call and converts its exception to a FileError that names the place.
template <class Run>
auto at(const JsonValue& place, Run run) {
  try {
    return run();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    place.fail(error.what());
  }
}

DType read_dtype(const JsonValue& object) {
  const auto dtype = object.find("dtype");
  return dtype ? at(*dtype, [&] { return parse_dtype(dtype->text()); }) : DType::float32;
}

bool read_flag(const JsonValue& object, const char* key, bool fallback) {
  const auto value = object.find(key);
  return value ? value->boolean() : fallback;
}

int64_t read_bytes(const JsonValue& object, const char* key) {
  const auto value = object.find(key);
  return value ? value->integer(0, kMaxBytes) : 0;
}

double read_cost(const JsonValue& object, const char* key, double fallback) {
  const auto value = object.find(key);
  return value ? value->number(0) : fallback;
}

std::string bytes_of_hexadecimal(const JsonValue& value) {
  const auto& digits = value.text();
  if (digits.size() % 2) value.expected("pairs of hexadecimal digits");
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    unsigned char byte = 0;
    const char* const end = digits.data() + i + 2;
    const auto [stop, error] = std::from_chars(digits.data() + i, end, byte, 16);
    if (error != std::errc() || stop != end) value.expected("pairs of hexadecimal digits");
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

Attribute read_attribute(const JsonValue& value) {
  if (value.is_integer())
    return value.integer(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  if (value.is_number()) return value.number();
  if (value.is_text()) return value.text();
  if (value.is_list())
    return value.integers(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  if (!value.is_object()) value.expected("a number, a string or a list of whole numbers");
  constexpr const char* kKinds[] = {"float", "hex"};
  value.refuse_unknown(kKinds);
  if (value.fields().size() != 1) value.expected("one field, 'float' or 'hex'");
  if (const auto hexadecimal = value.find("hex")) return bytes_of_hexadecimal(*hexadecimal);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto number = value.field("float");
  if (number.text() == "inf") return kInfinity;
  if (number.text() == "-inf") return -kInfinity;
  if (number.text() == "nan") return std::numeric_limits<double>::quiet_NaN();
  number.expected("'inf', '-inf' or 'nan'");
}

std::vector<Parameter> read_parameters(const JsonValue& object) {
  std::vector<Parameter> parameters;
  const auto list = object.find("parameters");
  if (!list) return parameters;
  for (const auto& entry : list->elements()) {
    entry.refuse_unknown(kParameterFields);
    auto& parameter = parameters.emplace_back();
    parameter.name = entry.field("name").text();
    parameter.shape = entry.field("shape").integers(0, kMaxExtent);
    parameter.dtype = read_dtype(entry);
    parameter.trainable = read_flag(entry, "trainable", true);
  }
  return parameters;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& source) : document_(text, source) {}

  Graph read() {
    const auto root = document_.root();
    check_format(root);
    root.refuse_unknown(kFileFields);
    builder_ = GraphBuilder(root.field("name").text());
    operators_ = root.field("operators").elements();
    for (const auto& entry : operators_) read_operator(entry);
    name_tensors();
    StopPoll stop;
    for (size_t i = 0; i < operators_.size(); ++i, stop.step()) connect(static_cast<int32_t>(i));
    for (size_t i = 0; i < operators_.size(); ++i) default_flops(static_cast<int32_t>(i));
    if (const auto collectives = root.find("collectives"))
      for (const auto& entry : collectives->elements()) read_collective(entry);
    return at(root, [&] { return builder_.build(); });
  }

 private:
  static void check_format(const JsonValue& root) {
    const auto format = root.field("format");
    if (format.text() != kFormat) format.expected(fmt::format("'{}'", kFormat));
    const auto version = root.field("version");
    if (!version.is_integer() || version.integer(0, 1 << 30) != kVersion)
      version.expected(fmt::format("{}", kVersion));
  }

  void read_operator(const JsonValue& entry) {
    entry.refuse_unknown(kOperatorFields);
    Operator op;
    op.name = entry.field("name").text();
    op.type = entry.field("type").text();
    if (const auto phase = entry.find("phase"))
      op.phase = at(*phase, [&] { return parse_choice<Phase>(phase->text()); });
    if (const auto attributes = entry.find("attributes"))
      for (const auto& [name, value] : attributes->fields())
        op.attributes.emplace(std::string(name), read_attribute(value));
    op.parameters = read_parameters(entry);
    op.flops = read_cost(entry, "flops", 0);
    op.traffic_bytes = read_cost(entry, "traffic_bytes", -1);
    op.measured_time_s = read_cost(entry, "measured_time_s", -1);
    op.measured_backward_time_s = read_cost(entry, "measured_backward_time_s", -1);
    op.extra_parameter_bytes = read_bytes(entry, "parameter_bytes");
    op.persistent_bytes = read_bytes(entry, "persistent_bytes");
    op.workspace_bytes = read_bytes(entry, "workspace_bytes");
    const int32_t id = at(entry, [&] { return builder_.add_operator(std::move(op)); });
    if (const auto outputs = entry.find("outputs"))
      for (const auto& output : outputs->elements()) read_output(id, output);
  }

  void read_output(int32_t op, const JsonValue& entry) {
    entry.refuse_unknown(kOutputFields);
    Tensor tensor;
    if (const auto name = entry.find("name")) tensor.name = name->text();
    tensor.dtype = read_dtype(entry);
    tensor.gradient = read_flag(entry, "gradient", true);
    const auto shape = entry.find("shape"), bytes = entry.find("bytes");
    if (shape) tensor.shape = shape->integers(0, kMaxExtent);
    tensor.bytes = shape ? dtype_bytes(tensor.dtype) : read_bytes(entry, "bytes");
    const int32_t id = at(entry, [&] { return builder_.add_output(op, std::move(tensor)); });
    const auto& added = builder_.tensor(id);
    if (shape && bytes && bytes->integer(0, kMaxBytes) != added.bytes)
      bytes->expected(
          fmt::format("{}, the size of its shape in {}", added.bytes, dtype_name(added.dtype)));
  }

  /// Registers names of tensors: their own, or their operator's.
  void name_tensors() {
    constexpr int32_t kSeveral = -1;
    for (int32_t t = 0; t < builder_.tensor_count(); ++t) {
      const auto [entry, added] = tensors_.emplace(builder_.tensor(t).name, t);
      if (!added) entry->second = kSeveral;
    }
    for (int32_t o = 0; o < builder_.operator_count(); ++o) {
      const auto& op = builder_.op(o);
      if (op.outputs.size() == 1) tensors_.emplace(op.name, op.outputs[0]);
    }
  }

  void connect(int32_t id) {
    const auto& entry = operators_[id];
    if (const auto inputs = entry.find("inputs"))
      for (const auto& input : inputs->elements()) builder_.read(id, tensor_number(input));
    if (const auto forward = entry.find("forward"))
      builder_.op(id).forward = operator_number(*forward);
    if (const auto unit = entry.find("unit")) {
      const auto key = unit->is_text()
                           ? "text " + unit->text()
                           : fmt::format("{}", unit->integer(std::numeric_limits<int64_t>::min(),
                                                             std::numeric_limits<int64_t>::max()));
      const auto [first, added] = units_.emplace(key, id);
      if (!added) builder_.colocate(first->second, id);
    }
  }

  int32_t tensor_number(const JsonValue& input) const {
    if (!input.is_text()) {
      if (builder_.tensor_count() == 0) input.fail("no operator has outputs");
      return static_cast<int32_t>(input.integer(1, builder_.tensor_count())) - 1;
    }
    const auto& name = input.text();
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      std::vector<std::string_view> names;
      names.reserve(static_cast<size_t>(builder_.tensor_count()));
      for (int32_t t = 0; t < builder_.tensor_count(); ++t)
        names.push_back(builder_.tensor(t).name);
      for (int32_t o = 0; o < builder_.operator_count(); ++o)
        if (builder_.op(o).outputs.size() == 1) names.push_back(builder_.op(o).name);
      input.fail("no tensor {}{}", in_quotes(name), nearest(name, names));
    }
    if (found->second < 0)
      input.fail("several tensors are called {}; name this one by its number", in_quotes(name));
    return found->second;
  }

  int32_t operator_number(const JsonValue& value) const {
    const auto& name = value.text();
    const int32_t found = builder_.find(name);
    if (found >= 0) return found;
    std::vector<std::string_view> names;
    names.reserve(static_cast<size_t>(builder_.operator_count()));
    for (int32_t o = 0; o < builder_.operator_count(); ++o) names.push_back(builder_.op(o).name);
    value.fail("no operator {}{}", in_quotes(name), nearest(name, names));
  }

  void default_flops(int32_t id) {
    const auto& entry = operators_[id];
    if (entry.find("flops")) return;
    auto& op = builder_.op(id);
    std::vector<const Tensor*> inputs, outputs;
    for (const int32_t input : op.inputs) inputs.push_back(&builder_.tensor(input));
    for (const int32_t output : op.outputs) outputs.push_back(&builder_.tensor(output));
    op.flops = forward_flops(op, inputs, outputs);
    if (!(op.flops >= 0) || std::isinf(op.flops))
      entry.fail("its shapes give no finite number of floating-point operations");
  }

  void read_collective(const JsonValue& entry) {
    entry.refuse_unknown(kCollectiveFields);
    Collective collective;
    collective.name = entry.field("name").text();
    const auto kind = entry.field("kind");
    collective.kind = at(kind, [&] { return parse_choice<CollectiveKind>(kind.text()); });
    if (const auto algorithm = entry.find("algorithm"))
      collective.algorithm =
          at(*algorithm, [&] { return parse_choice<CollectiveAlgorithm>(algorithm->text()); });
    collective.bytes = entry.field("bytes").integer(0, kMaxBytes);
    for (const auto& member : entry.field("members").elements())
      collective.members.push_back(operator_number(member));
    at(entry, [&] { builder_.add_collective(std::move(collective)); });
  }

  JsonDocument document_;
  GraphBuilder builder_{""};
  std::vector<JsonValue> operators_;
  std::unordered_map<std::string, int32_t> tensors_;  // by name; -1: ambiguous
  std::unordered_map<std::string, int32_t> units_;    // first operator of a unit
};

}  // namespace

std::string graph_to_json(const Graph& graph) { return Writer(graph).write(); }

Graph parse_graph_json(std::string_view text, const std::string& source) {
  return Reader(text, source).read();
}

}  // namespace trinity
