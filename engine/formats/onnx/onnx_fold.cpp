#include "formats/onnx/onnx_fold.h"

#include <algorithm>
#include <cmath>

#include "formats/onnx/onnx_literal.h"

namespace trinity::onnx_import {
namespace {

using onnx::TensorProto;
using Number = long double;
using Numbers = std::vector<Number>;
using Maybe = std::optional<Number>;

constexpr Number kMost = 0x1p63L;  // integers beyond are not computed

/// What the functions below see: the node's arguments and the shape and type of its first output,
/// which may be a lie of the file.
class Folding {
 public:
  Folding(Model& model, const Node& node)
      : model_(model), node_(node), output_(model.value(node.outputs.front())) {}

  const Node& node() const { return node_; }
  size_t arguments() const { return node_.inputs.size(); }
  bool has(size_t i) const { return i < arguments() && node_.inputs[i] >= 0; }
  const Value& argument(size_t i) const { return model_.value(node_.inputs[i]); }
  const Literal* literal(size_t i) const { return has(i) ? argument(i).literal.get() : nullptr; }
  size_t rank(size_t i) const { return argument(i).shape ? argument(i).shape->size() : kMaxRank; }
  bool real() const { return is_floating(output_.element); }
  const Shape& shape() const { return *output_.shape; }
  size_t elements() const { return static_cast<size_t>(element_count(shape())); }
  int64_t integer(std::string_view name, int64_t fallback) const {
    const auto* attribute = node_.attribute(name);
    return attribute && attribute->has_i() ? attribute->i() : fallback;
  }

 private:
  Model& model_;
  const Node& node_;
  const Value& output_;
};

using Result = std::optional<Numbers>;
using Rule = Result (*)(const Folding&);

Maybe in_range(Number number) {
  return number >= -kMost && number < kMost ? Maybe(number) : std::nullopt;
}

/// Element-wise over scalars and vectors of one length.
template <class Function>
Result map_elements(const Folding& fold, size_t count, Function function) {
  std::vector<const Literal*> literals;
  for (size_t i = 0; i < count; ++i) {
    const auto* literal = fold.literal(i);
    if (!literal || fold.rank(i) > 1) return std::nullopt;
    if (literal->numbers.size() != 1 && literal->numbers.size() != fold.elements())
      return std::nullopt;
    literals.push_back(literal);
  }
  Numbers result;
  Numbers operands(count);
  for (size_t k = 0; k < fold.elements(); ++k) {
    for (size_t i = 0; i < count; ++i) {
      const auto& numbers = literals[i]->numbers;
      operands[i] = numbers[numbers.size() == 1 ? 0 : k];
    }
    const Maybe number = function(operands);
    if (!number) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

/// Integers truncate, as in C; the sign of Mod is the divisor's.
Maybe divide(Number a, Number b, bool real) {
  if (b == 0) return std::nullopt;
  return in_range(real ? a / b : std::trunc(a / b));
}

Maybe modulo(Number a, Number b) {
  if (b == 0) return std::nullopt;
  const Number rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Maybe combine(std::string_view type, Number a, Number b, bool real) {
  if (type == "Add") return in_range(a + b);
  if (type == "Sub") return in_range(a - b);
  if (type == "Mul") return in_range(a * b);
  if (type == "Div") return divide(a, b, real);
  if (type == "Mod") return modulo(a, b);
  if (type == "Pow") return in_range(std::pow(a, b));
  if (type == "Min") return std::min(a, b);
  if (type == "Max") return std::max(a, b);
  if (type == "Equal") return a == b;
  if (type == "Less") return a < b;
  if (type == "LessOrEqual") return a <= b;
  if (type == "Greater") return a > b;
  if (type == "GreaterOrEqual") return a >= b;
  if (type == "And") return a != 0 && b != 0;
  if (type == "Or") return a != 0 || b != 0;
  return std::nullopt;
}

Result binary(const Folding& fold) {
  if (fold.arguments() != 2) return std::nullopt;
  const bool real = fold.real();
  const auto& type = fold.node().type;
  return map_elements(fold, 2, [&](const Numbers& operands) {
    return combine(type, operands[0], operands[1], real);
  });
}

Maybe change(std::string_view type, Number x) {
  if (type == "Neg") return in_range(-x);
  if (type == "Abs") return in_range(std::fabs(x));
  if (type == "Floor") return std::floor(x);
  if (type == "Ceil") return std::ceil(x);
  if (type == "Round") return std::nearbyint(x);
  if (type == "Sqrt") return x >= 0 ? Maybe(std::sqrt(x)) : std::nullopt;
  if (type == "Not") return x == 0;
  return std::nullopt;
}

Result unary(const Folding& fold) {
  const auto& type = fold.node().type;
  return map_elements(fold, 1, [&](const Numbers& operands) { return change(type, operands[0]); });
}

Result cast(const Folding& fold) {
  const bool real = fold.real();
  return map_elements(fold, 1, [&](const Numbers& operands) {
    return real ? Maybe(operands[0]) : in_range(std::trunc(operands[0]));
  });
}

Result where(const Folding& fold) {
  return map_elements(fold, 3, [](const Numbers& operands) {
    return Maybe(operands[0] != 0 ? operands[1] : operands[2]);
  });
}

/// The same numbers in another shape.
Result same(const Folding& fold) {
  const auto* literal = fold.literal(0);
  return literal ? Result(literal->numbers) : std::nullopt;
}

Result shape(const Folding& fold) {
  if (!fold.has(0) || !fold.argument(0).shape) return std::nullopt;
  const auto& extents = *fold.argument(0).shape;
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t given = fold.integer("start", 0);
  const auto start = std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank);
  if (fold.elements() > extents.size() - static_cast<size_t>(start)) return std::nullopt;
  Numbers result;
  for (size_t i = 0; i < fold.elements(); ++i)
    result.push_back(extents[static_cast<size_t>(start) + i]);
  return result;
}

Result size(const Folding& fold) {
  if (!fold.has(0) || !fold.argument(0).shape) return std::nullopt;
  return Numbers{static_cast<Number>(element_count(*fold.argument(0).shape))};
}

Result concat(const Folding& fold) {
  Numbers result;
  for (size_t i = 0; i < fold.arguments(); ++i) {
    const auto* literal = fold.literal(i);
    if (!literal || fold.rank(i) != 1) return std::nullopt;
    result.insert(result.end(), literal->numbers.begin(), literal->numbers.end());
  }
  return result;
}

/// Along the only axis.
Result gather(const Folding& fold) {
  const auto* data = fold.literal(0);
  const auto* indices = fold.literal(1);
  if (!data || !indices || fold.rank(0) != 1) return std::nullopt;
  const auto count = static_cast<Number>(data->numbers.size());
  Numbers result;
  for (Number index : indices->numbers) {
    if (index < 0) index += count;
    if (!(index >= 0 && index < count)) return std::nullopt;
    result.push_back(data->numbers[static_cast<size_t>(index)]);
  }
  return result;
}

std::optional<int64_t> single(const Folding& fold, size_t argument, std::string_view attribute) {
  if (const auto* found = fold.node().attribute(attribute))
    return found->ints_size() == 1 ? std::optional(found->ints(0)) : std::nullopt;
  const auto numbers = integers_of(fold.literal(argument));
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

/// Of a vector, with a step of 1 or -1.
Result slice(const Folding& fold) {
  const auto* data = fold.literal(0);
  if (!data || fold.rank(0) != 1) return std::nullopt;
  const auto start = single(fold, 1, "starts");
  const auto step = fold.has(4) ? single(fold, 4, "steps") : std::optional<int64_t>(1);
  if (!start || !step || (*step != 1 && *step != -1)) return std::nullopt;
  const auto count = static_cast<int64_t>(data->numbers.size());
  if (count == 0) return std::nullopt;
  int64_t at = *start < 0 ? (*start < -count ? -1 : *start + count) : std::min(*start, count);
  at = std::clamp<int64_t>(at, 0, *step > 0 ? count : count - 1);
  Numbers result;
  for (size_t i = 0; i < fold.elements(); ++i, at += *step) {
    if (at < 0 || at >= count) return std::nullopt;
    result.push_back(data->numbers[at]);
  }
  return result;
}

Result reduce(const Folding& fold) {
  const auto* data = fold.literal(0);
  if (!data || fold.rank(0) > 1 || data->numbers.empty() || fold.elements() != 1)
    return std::nullopt;
  const auto& type = fold.node().type;
  const std::string_view step = type == "ReduceProd"  ? "Mul"
                                : type == "ReduceSum" ? "Add"
                                : type == "ReduceMax" ? "Max"
                                                      : "Min";
  Maybe total = data->numbers.front();
  for (size_t i = 1; i < data->numbers.size() && total; ++i)
    total = combine(step, *total, data->numbers[i], fold.real());
  return total ? Result(Numbers{*total}) : std::nullopt;
}

Result range(const Folding& fold) {
  const auto* start = fold.literal(0);
  const auto* delta = fold.literal(2);
  if (!start || !delta || start->numbers.size() != 1 || delta->numbers.size() != 1)
    return std::nullopt;
  Numbers result;
  for (size_t i = 0; i < fold.elements(); ++i)
    result.push_back(start->numbers[0] + static_cast<Number>(i) * delta->numbers[0]);
  return result;
}

Result filled(const Folding& fold) {
  const auto* value = fold.node().attribute("value");
  const auto literal = value ? decode(value->t()) : nullptr;
  if (value && (!literal || literal->numbers.size() != 1)) return std::nullopt;
  return Numbers(fold.elements(), literal ? literal->numbers[0] : 0);
}

Result expand(const Folding& fold) {
  const auto* data = fold.literal(0);
  if (!data || data->numbers.size() != 1) return std::nullopt;
  return Numbers(fold.elements(), data->numbers[0]);
}

Result non_zero(const Folding& fold) {
  const auto* data = fold.literal(0);
  if (!data || fold.rank(0) != 1) return std::nullopt;
  Numbers result;
  for (size_t i = 0; i < data->numbers.size(); ++i)
    if (data->numbers[i] != 0) result.push_back(static_cast<Number>(i));
  return result;
}

struct NamedRule {
  std::string_view type;
  Rule rule;
};
constexpr NamedRule kRules[] = {
    {"Add", binary},
    {"Sub", binary},
    {"Mul", binary},
    {"Div", binary},
    {"Mod", binary},
    {"Pow", binary},
    {"Min", binary},
    {"Max", binary},
    {"Equal", binary},
    {"Less", binary},
    {"LessOrEqual", binary},
    {"Greater", binary},
    {"GreaterOrEqual", binary},
    {"And", binary},
    {"Or", binary},
    {"Neg", unary},
    {"Abs", unary},
    {"Floor", unary},
    {"Ceil", unary},
    {"Round", unary},
    {"Sqrt", unary},
    {"Not", unary},
    {"Cast", cast},
    {"CastLike", cast},
    {"Where", where},
    {"Identity", same},
    {"Reshape", same},
    {"Squeeze", same},
    {"Unsqueeze", same},
    {"Flatten", same},
    {"Shape", shape},
    {"Size", size},
    {"Concat", concat},
    {"Gather", gather},
    {"Slice", slice},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceMax", reduce},
    {"ReduceMin", reduce},
    {"Range", range},
    {"ConstantOfShape", filled},
    {"Expand", expand},
    {"NonZero", non_zero},
};

Rule find_rule(std::string_view type) {
  for (const auto& [name, rule] : kRules)
    if (name == type) return rule;
  return nullptr;
}

void store(Value& value, Numbers numbers) {
  if (!value.shape || static_cast<int64_t>(numbers.size()) != element_count(*value.shape)) return;
  auto literal = std::make_shared<Literal>();
  literal->numbers = std::move(numbers);
  value.literal = std::move(literal);
}

/// The parts of a vector.
void split(Model& model, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] < 0) return;
  const auto& data = model.value(node.inputs[0]);
  if (!data.literal || !data.shape || data.shape->size() != 1) return;
  const auto& numbers = data.literal->numbers;
  size_t at = 0;
  for (const int32_t output : node.outputs) {
    if (output < 0 || !model.value(output).shape) return;
    const auto count = static_cast<size_t>(element_count(*model.value(output).shape));
    if (count > numbers.size() - at) return;
    const auto first = numbers.begin() + static_cast<int64_t>(at);
    store(model.value(output), Numbers(first, first + static_cast<int64_t>(count)));
    at += count;
  }
}

}  // namespace

void fold_numbers(Model& model, const Node& node) {
  if (node.type == "Split") return split(model, node);
  const auto rule = find_rule(node.type);
  if (!rule || node.outputs.front() < 0) return;
  auto& output = model.value(node.outputs.front());
  if (!output.shape || static_cast<size_t>(element_count(*output.shape)) > kMaxLiteral) return;
  if (auto numbers = rule(Folding(model, node))) store(output, std::move(*numbers));
}

}  // namespace trinity::onnx_import
