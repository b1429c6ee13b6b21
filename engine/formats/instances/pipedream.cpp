#include "formats/instances/pipedream.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/words.h"

namespace trinity {
namespace {

/// Layer names of PyTorch and TensorFlow, in lower case without numbers, and the corresponding ONNX
/// types.
const auto kTypes = by_word<const char*>({
    {"Conv", "conv2d 1x1 prev_1x1"},
    {"BatchNormalization", "batchnorm2d"},
    {"Relu", "relu"},
    {"Gemm", "linear fc classifier prediction"},
    {"AveragePool", "avgpool2d"},
    {"GlobalAveragePool", "adaptiveavgpool2d"},
    {"MaxPool", "maxpool2d"},
    {"Gather", "embedding embed-token"},
    {"Dropout", "embed-token-dropout dropout"},
    {"OneHot", "embed-segment-one_hot"},
    {"Reshape", "view reshape_input"},
    {"Shape", "size"},
    {"LSTM", "lstm emubidirlstm recurrentattention"},
    {"Add", "add"},
    {"Concat", "concat"},
    {"SoftmaxCrossEntropyLoss", "softmax_loss"},
    {"Identity", "__getitem__"},
});

/// The type of a layer: the last part of a path ("cell_3/Relu_1"), without counters ("layer_17",
/// "Conv2d_1_2"), so that equal layers have one type.
std::string operator_type(std::string_view description) {
  auto name = description.substr(0, description.find('('));
  if (name.starts_with("Input")) return "Input";
  name = name.substr(0, name.find(' '));
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  const auto known = [](std::string_view word) -> const char* {
    std::string lower(word);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto found = kTypes.find(lower);
    return found == kTypes.end() ? nullptr : found->second;
  };
  if (const char* type = known(name)) return type;
  const auto end = name.find_last_not_of("0123456789_");
  if (end == std::string_view::npos) return "Operator";
  name = name.substr(0, end + 1);
  const char* type = known(name);
  return type ? type : std::string(name);
}

class PipedreamReader {
 public:
  PipedreamReader(const std::string& source, const std::string& name)
      : source_(source), builder_(name) {}

  Graph read(std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find('\n');
      auto line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++line_;
      line = line.substr(0, line.find_last_not_of(" \r") + 1);  // npos + 1 is 0
      if (line.empty()) continue;
      const auto start = line.find_first_not_of("\t ");
      if (start == 0)
        node(line);
      else if (start != std::string_view::npos)
        edge(line.substr(start));
    }
    if (ids_.empty()) throw FileError(source_ + ": no node lines; is this a PipeDream graph.txt?");
    try {
      return builder_.build();
    } catch (const Error& error) {
      throw FileError("{}: {}", source_, error.what());
    }
  }

 private:
  template <class... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> what, Values&&... values) const {
    throw FileError("{}:{}: {}", source_, line_, fmt::format(what, std::forward<Values>(values)...));
  }

  void node(std::string_view line) {
    const auto parts = split(line, " -- ");
    if (parts.size() < 3 || parts.size() > 4)
      fail("expected '<id> -- <description> -- <fields>', got '{}'", clip(line));
    const std::string id(parts[0]);
    if (ids_.contains(id)) fail("node '{}' appears twice", clip(id));
    const auto fields = node_fields(parts[2]);
    Operator op;
    op.name = id;
    op.type = operator_type(parts[1]);
    op.attributes["description"] = std::string(parts[1]);
    op.attributes["file_position"] = static_cast<int64_t>(ids_.size()) + 1;
    if (parts.size() == 4) read_stage(parts[3], op);
    const bool input = op.type == "Input";
    const double forward_ms = number(fields, "forward_compute_time");
    const double backward_ms = number(fields, "backward_compute_time");
    op.measured_time_s = input ? 0 : forward_ms * 1e-3;
    op.measured_backward_time_s = input ? 0 : backward_ms * 1e-3;
    if (input) op.attributes["loader_time_s"] = (forward_ms + backward_ms) * 1e-3;
    op.extra_parameter_bytes = bytes(number(fields, "parameter_size"), "parameter_size");
    Tensor output;
    output.bytes = bytes(sizes(fields, "activation_size"), "activation_size");
    try {
      const int32_t added = builder_.add_operator(std::move(op));
      ids_.emplace(id, builder_.add_output(added, std::move(output)));
      operators_.emplace(id, added);
    } catch (const ArgumentError& error) {
      fail("{}", error.what());
    }
  }

  /// `stage_id=S`: the node's stage in a plan.
  void read_stage(std::string_view text, Operator& op) const {
    const auto fields = node_fields(text);
    if (!fields.contains("stage_id")) return;
    const double stage = number(fields, "stage_id");
    if (stage != std::floor(stage) || stage > 1e6)
      fail("field 'stage_id': expected a whole number, got {}", stage);
    op.attributes["stage"] = static_cast<int64_t>(stage);
  }

  void edge(std::string_view line) {
    const auto ends = split(line, " -- ");
    if (ends.size() != 2)
      fail("expected '<source> -- <target>', got '{}'", clip(line));
    for (const auto end : ends)
      if (!ids_.contains(std::string(end)))
        fail("edge names node '{}', which no node line describes", clip(end));
    const std::string source(ends[0]), target(ends[1]);
    if (source == target) fail("edge from node '{}' to itself", clip(source));
    if (!edges_.insert({source, target}).second) return;
    builder_.read(operators_.at(target), ids_.at(source));
  }

  using Fields = std::map<std::string, std::string_view, std::less<>>;

  Fields node_fields(std::string_view text) const {
    Fields fields;
    for (const auto part : split(text, ", ")) {
      const auto equals = part.find('=');
      if (equals == std::string_view::npos)
        fail("expected 'name=value', got '{}'", clip(part));
      fields.emplace(part.substr(0, equals), part.substr(equals + 1));
    }
    return fields;
  }

  std::string_view field(const Fields& fields, const char* name) const {
    const auto found = fields.find(name);
    if (found != fields.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& entry : fields) names.push_back(entry.first);
    fail("field '{}' is missing{} (the line may be cut short)", name,
         names.empty() ? "" : fmt::format("; there are: {}", fmt::join(names, ", ")));
  }

  double parse(std::string_view text, const char* name) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
      fail("field '{}': expected a number, got '{}'", name, clip(text));
    if (value < 0) fail("field '{}': must not be negative, got {}", name, clip(text));
    return value;
  }

  double number(const Fields& fields, const char* name) const {
    return parse(field(fields, name), name);
  }

  /// A number, or the sum of `[a; b; c]`.
  double sizes(const Fields& fields, const char* name) const {
    auto text = field(fields, name);
    if (!text.starts_with('[')) return parse(text, name);
    if (!text.ends_with(']')) fail("field '{}': list without ']'", name);
    text = text.substr(1, text.size() - 2);
    double sum = 0;
    for (const auto part : split(text, "; ")) sum += parse(part, name);
    return sum;
  }

  int64_t bytes(double value, const char* name) const {
    if (value > 1e15) fail("field '{}': expected at most 1e15 bytes, got {}", name, value);
    return std::llround(value);
  }

  static std::vector<std::string_view> split(std::string_view text, std::string_view by) {
    std::vector<std::string_view> parts;
    for (;;) {
      const auto at = text.find(by);
      parts.push_back(text.substr(0, at));
      if (at == std::string_view::npos) return parts;
      text.remove_prefix(at + by.size());
    }
  }

  static std::string clip(std::string_view text) {
    return text.size() <= 60 ? std::string(text) : std::string(text.substr(0, 57)) + "...";
  }

  const std::string& source_;
  GraphBuilder builder_;
  int line_ = 0;
  std::map<std::string, int32_t> ids_, operators_;  // node id -> output tensor, operator
  std::set<std::pair<std::string, std::string>> edges_;
};

}  // namespace

Graph parse_pipedream(const std::string& text, const std::string& source,
                      const std::string& graph_name) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw FileError("{}:1: the text is in UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8)", source);
  const bool has_mark = text.starts_with("\xEF\xBB\xBF");
  return PipedreamReader(source, graph_name).read(has_mark ? text.substr(3) : text);
}

}  // namespace trinity
