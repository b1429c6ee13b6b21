#include "graph/layers.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/index.h"

namespace trinity {
namespace {

struct Family {
  int32_t first = 0, operators = 0;
  std::set<int64_t> numbers;
};

/// Calls body(prefix, number) for every slash-separated part of a name that ends in a number.
template <class Body>
void for_numbers(std::string_view name, Body body) {
  for (size_t end = name.find('/'); end != std::string_view::npos; end = name.find('/', end + 1)) {
    size_t digits = end;
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
    if (digits == end || end - digits >= 10) continue;
    int64_t number = 0;
    std::from_chars(name.data() + digits, name.data() + end, number);
    body(name.substr(0, digits), number);
  }
}

/// True if a stem indicates layers: "layer_", "model/blocks.".
bool says_layers(std::string_view stem) {
  while (!stem.empty() && (stem.back() == '_' || stem.back() == '.')) stem.remove_suffix(1);
  if (stem.ends_with('s')) stem.remove_suffix(1);
  return stem.ends_with("layer") || stem.ends_with("block");
}

/// Stem of the family with the most operators, among those with several numbers or, if there is
/// none, those that indicate layers; or empty.
std::string largest_family(const Graph& graph) {
  std::map<std::string, Family, std::less<>> families;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (graph.op(op).phase != Phase::forward) continue;
    for_numbers(graph.op(op).name, [&](std::string_view stem, int64_t number) {
      auto found = families.find(stem);
      if (found == families.end()) found = families.emplace(stem, Family{}).first;
      auto& family = found->second;
      if (family.operators++ == 0) family.first = op;
      family.numbers.insert(number);
    });
  }
  const auto rank = [](const auto& entry) {
    return std::tuple(entry.second.numbers.size() > 1, entry.second.operators, -entry.second.first);
  };
  std::string best;
  std::tuple<bool, int32_t, int32_t> most;
  for (const auto& entry : families) {
    if (entry.second.numbers.size() < 2 && !says_layers(entry.first)) continue;
    if (best.empty() || rank(entry) > most) best = entry.first, most = rank(entry);
  }
  return best;
}

/// True if an operator is a matmul of activations.
bool multiplies(const Graph& graph, int32_t op) {
  const auto& about = graph.op(op);
  if (about.type != "MatMul" || !about.parameters.empty()) return false;
  return std::none_of(about.inputs.begin(), about.inputs.end(), [&](int32_t input) {
    return graph.op(graph.tensor(input).producer).inputs.empty();
  });
}

}  // namespace

Layers repeated_layers(const Graph& graph) {
  Layers layers;
  layers.of.assign(at(graph.operator_count()), -1);
  layers.stem = largest_family(graph);
  if (layers.stem.empty()) return layers;
  std::map<int64_t, int32_t> place;  // layer number in names -> index
  std::vector<int64_t> number(at(graph.operator_count()), -1);
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    for_numbers(graph.op(op).name, [&](std::string_view stem, int64_t found) {
      if (stem == layers.stem) place[number[op] = found] = 0;
    });
  for (auto& entry : place) entry.second = layers.count++;
  std::vector<bool> needed(at(graph.operator_count()), false);  // by a layer
  for (int32_t op = graph.operator_count() - 1; op >= 0; --op) {
    if (graph.op(op).phase != Phase::forward) continue;
    if (number[op] < 0 && !needed[op]) continue;
    for (const int32_t input : graph.op(op).inputs) needed[graph.tensor(input).producer] = true;
  }
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const int32_t forward = graph.op(op).forward;
    if (graph.op(op).phase != Phase::forward && forward >= 0)
      layers.of[op] = layers.of[forward];
    else
      layers.of[op] = number[op] >= 0 ? place[number[op]] : needed[op] ? -1 : layers.count;
  }
  return layers;
}

std::vector<bool> attention_core(const Graph& graph, const Layers& layers) {
  const auto count = at(graph.operator_count());
  std::vector<bool> after(count, false), before(count, false);
  const auto same_layer = [&](int32_t a, int32_t b) { return layers.of[a] == layers.of[b]; };
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (graph.op(op).phase != Phase::forward) continue;
    after[op] = multiplies(graph, op);
    for (const int32_t input : graph.op(op).inputs) {
      const int32_t from = graph.tensor(input).producer;
      if (after[from] && same_layer(from, op)) after[op] = true;
    }
  }
  for (int32_t op = graph.operator_count() - 1; op >= 0; --op) {
    if (graph.op(op).phase != Phase::forward) continue;
    if (multiplies(graph, op)) before[op] = true;
    if (!before[op]) continue;
    for (const int32_t input : graph.op(op).inputs) {
      const int32_t from = graph.tensor(input).producer;
      if (same_layer(from, op)) before[from] = true;
    }
  }
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const auto& about = graph.op(op);
    const bool all_of_it = about.type == "Attention" && about.phase == Phase::forward;
    after[op] = (after[op] && before[op]) || all_of_it;
  }
  return after;
}

bool chooses_experts(const Graph& graph, int32_t op) {
  return std::ranges::any_of(graph.readers(op), [&](int32_t reader) {
    const auto& type = graph.op(reader).type;
    const bool scores = type == "Softmax" || type == "Sigmoid";
    return type == "TopK" || (scores && chooses_experts(graph, reader));
  });
}

}  // namespace trinity
