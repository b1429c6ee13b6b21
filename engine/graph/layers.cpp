#include "graph/layers.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/index.h"

namespace trinity {
namespace {

struct Family {
  int32_t first = 0, operators = 0;
  std::set<int64_t> numbers;
};

/// Calls body(what stands before the number, the number) for every part of a name, between
/// slashes, that ends in one.
template <class Body>
void for_numbers(const std::string& name, Body body) {
  for (size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
    size_t digits = end;
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
    if (digits < end && end - digits < 10)
      body(name.substr(0, digits), std::stoll(name.substr(digits, end - digits)));
  }
}

/// The stem of the family with most operators; empty where no name has two numbers.
std::string largest_family(const Graph& graph) {
  std::map<std::string, Family> families;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (graph.op(op).phase != Phase::forward) continue;
    for_numbers(graph.op(op).name, [&](const std::string& stem, int64_t number) {
      auto& family = families[stem];
      if (family.operators++ == 0) family.first = op;
      family.numbers.insert(number);
    });
  }
  std::string best;
  const Family* chosen = nullptr;
  for (const auto& [stem, family] : families) {
    if (family.numbers.size() < 2) continue;
    const bool more = !chosen || family.operators > chosen->operators ||
                      (family.operators == chosen->operators && family.first < chosen->first);
    if (more) best = stem, chosen = &family;
  }
  return best;
}

}  // namespace

Layers repeated_layers(const Graph& graph) {
  Layers layers;
  layers.of.assign(at(graph.operator_count()), -1);
  layers.stem = largest_family(graph);
  if (layers.stem.empty()) return layers;
  std::map<int64_t, int32_t> place;  // of the numbers in the names
  std::vector<int64_t> number(at(graph.operator_count()), -1);
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    for_numbers(graph.op(op).name, [&](const std::string& stem, int64_t found) {
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

}  // namespace trinity
