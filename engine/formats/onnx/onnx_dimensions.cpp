#include "formats/onnx/onnx_dimensions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "base/error.h"

namespace trinity::onnx_import {
namespace {

constexpr size_t kMaxExpression = 256;  // characters; longer texts are names
constexpr int kMaxDepth = 32;

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9') || c == '.'; }

/// Evaluates expressions of computed dimensions as written by PyTorch (SymPy's notation). `lookup`
/// returns none for unknown names.
class Expression {
 public:
  using Lookup = std::function<std::optional<int64_t>(std::string_view)>;

  Expression(std::string_view text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  /// An integer from 1 to 2^50, or none.
  std::optional<int64_t> evaluate() {
    if (text_.size() > kMaxExpression) return std::nullopt;
    const double value = sum(0);
    skip_spaces();
    if (failed_ || at_ != text_.size() || !(value >= 1 && value <= 0x1p50) ||
        std::trunc(value) != value)
      return std::nullopt;
    return static_cast<int64_t>(value);
  }

 private:
  double fail() {
    failed_ = true;
    return 0;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(std::string_view token) {
    skip_spaces();
    if (failed_ || text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  double sum(int depth) {
    if (depth > kMaxDepth) return fail();
    double value = product(depth);
    for (;;) {
      if (take("+"))
        value += product(depth);
      else if (take("-"))
        value -= product(depth);
      else
        return value;
    }
  }

  double product(int depth) {
    double value = factor(depth);
    for (;;) {
      if (take("//")) {
        value = std::floor(value / factor(depth));
      } else if (take("/")) {
        value /= factor(depth);
      } else if (take("%")) {
        value = modulo(value, factor(depth));
      } else if (take("*")) {
        value *= factor(depth);
      } else {
        return value;
      }
    }
  }

  static double modulo(double a, double b) { return a - std::floor(a / b) * b; }

  double factor(int depth) {
    if (take("-")) return depth > kMaxDepth ? fail() : -factor(depth + 1);
    const double base = atom(depth);
    return take("**") ? std::pow(base, depth > kMaxDepth ? fail() : factor(depth + 1)) : base;
  }

  double atom(int depth) {
    if (take("(")) {
      const double value = sum(depth + 1);
      return take(")") ? value : fail();
    }
    if (at_ >= text_.size()) return fail();
    if (!begins_name(text_[at_])) return number();
    const auto start = at_;
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    const auto name = text_.substr(start, at_ - start);
    if (take("(")) return call(name, depth);
    const auto size = failed_ ? std::nullopt : lookup_(name);
    return size ? static_cast<double>(*size) : fail();
  }

  double number() {
    double value = 0;
    const auto* end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) return fail();
    at_ = static_cast<size_t>(rest - text_.data());
    return value;
  }

  double call(std::string_view name, int depth) {
    std::vector<double> arguments;
    do arguments.push_back(sum(depth + 1));
    while (take(","));
    if (!take(")")) return fail();
    const bool two = arguments.size() == 2;
    if (name == "floor" && !two) return std::floor(arguments[0]);
    if ((name == "ceiling" || name == "CeilToInt") && !two) return std::ceil(arguments[0]);
    if (name == "Max") return *std::max_element(arguments.begin(), arguments.end());
    if (name == "Min") return *std::min_element(arguments.begin(), arguments.end());
    if (!two) return fail();
    if (name == "FloorDiv") return std::floor(arguments[0] / arguments[1]);
    if (name == "Mod" || name == "PythonMod") return modulo(arguments[0], arguments[1]);
    if (name == "CleanDiv" || name == "IntTrueDiv") return arguments[0] / arguments[1];
    return fail();
  }

  std::string_view text_;
  const Lookup& lookup_;
  size_t at_ = 0;
  bool failed_ = false;
};

/// Adds all names in a dimension's text, and the text itself.
void add_names(std::string_view text, std::set<std::string>& names) {
  if (text.empty()) return;
  names.emplace(text);
  for (size_t at = 0; at < text.size();) {
    const auto start = at;
    while (at < text.size() && in_name(text[at])) ++at;
    if (at > start && begins_name(text[start])) names.emplace(text.substr(start, at - start));
    if (at == start) ++at;
  }
}

}  // namespace

Dimensions::Dimensions(const OnnxOptions& options) : options_(options) {
  if (options.open_dimension < 1)
    throw ArgumentError("open_dimension must be at least 1, got {}", options.open_dimension);
  for (const auto& [name, size] : options.dimensions) {
    if (size < 1)
      throw ArgumentError("dimension '{}' must be at least 1, got {}", name, size);
    sizes_.emplace(name, size);
  }
}

int64_t Dimensions::open() {
  ++unnamed_;
  return options_.open_dimension;
}

int64_t Dimensions::input_size(const onnx::TensorShapeProto::Dimension& dimension) {
  if (dimension.has_dim_value()) return dimension.dim_value();
  const auto& text = dimension.dim_param();
  if (text.empty()) return open();
  if (const auto found = sizes_.find(text); found != sizes_.end()) return found->second;
  std::vector<std::string> unknown;
  const Expression::Lookup assume = [&](std::string_view name) -> std::optional<int64_t> {
    if (const auto found = sizes_.find(name); found != sizes_.end()) return found->second;
    unknown.emplace_back(name);
    return options_.open_dimension;
  };
  const auto value = Expression(text, assume).evaluate();
  if (!value) unknown = {text};
  for (const auto& name : unknown) {
    sizes_.emplace(name, options_.open_dimension);
    assumed_.insert(name);
  }
  return value.value_or(options_.open_dimension);
}

Shape Dimensions::input_shape(const onnx::TensorShapeProto& shape, int32_t element,
                              const std::string& owner) {
  Shape sizes;
  if (static_cast<size_t>(shape.dim_size()) > kMaxRank)
    throw FileError("{} has {} dimensions, more than {}", owner, shape.dim_size(), kMaxRank);
  for (const auto& dimension : shape.dim()) sizes.push_back(input_size(dimension));
  check_shape(sizes, element, owner);
  return sizes;
}

std::optional<int64_t> Dimensions::known(const onnx::TensorShapeProto::Dimension& dimension) {
  if (dimension.has_dim_value()) return std::max<int64_t>(dimension.dim_value(), -1);
  const auto& text = dimension.dim_param();
  if (text.empty()) return std::nullopt;
  if (const auto found = sizes_.find(text); found != sizes_.end()) return found->second;
  const Expression::Lookup look = [&](std::string_view name) -> std::optional<int64_t> {
    const auto found = sizes_.find(name);
    return found == sizes_.end() ? std::nullopt : std::optional(found->second);
  };
  return Expression(text, look).evaluate();
}

void Dimensions::check_options(const onnx::GraphProto& graph) const {
  if (options_.dimensions.empty()) return;
  std::set<std::string> names;
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto& info : *list)
      for (const auto& dimension : info.type().tensor_type().shape().dim())
        add_names(dimension.dim_param(), names);
  for (const auto& [name, size] : options_.dimensions) {
    if (names.contains(name)) continue;
    std::vector<std::string> some;
    for (const auto& known : names)
      if (some.size() < 20) some.push_back(clip(known));
    const auto list =
        some.empty() ? "it has none" : fmt::format("there are: {}", fmt::join(some, ", "));
    throw ArgumentError("the model has no open dimension '{}'{} ({}{})", name, suggestion(name, some), list,
                        names.size() > some.size() ? ", ..." : "");
  }
}

std::string Dimensions::report() const {
  if (assumed_.empty() && unnamed_ == 0) return "";
  std::string text;
  size_t shown = 0;
  for (const auto& name : assumed_) {
    if (++shown > 10) break;
    text += (shown > 1 ? ", '" : " '") + clip(name) + "'";
  }
  if (assumed_.size() > 10) text += fmt::format(" and {} more", assumed_.size() - 10);
  if (unnamed_ > 0)
    text += fmt::format("{} {} without a name", assumed_.empty() ? "" : " and", unnamed_);
  return fmt::format(
      "the file has open dimensions, taken as {} (options dimensions, "
      "open_dimension):{}",
      options_.open_dimension, text);
}

}  // namespace trinity::onnx_import
