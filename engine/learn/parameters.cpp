#include "learn/parameters.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace trinity {

void Parameters::add(std::string name, std::vector<int64_t> shape) {
  Weight weight{std::move(name), std::move(shape), size(), 1};
  for (const int64_t extent : weight.shape) weight.count *= extent;
  values.resize(values.size() + static_cast<size_t>(weight.count), 0.0f);
  weights_.push_back(std::move(weight));
}

void Parameters::initialise(std::string_view prefix, uint64_t seed) {
  uint64_t index = 0;
  for (const auto& weight : weights_) {
    if (!weight.name.starts_with(prefix)) continue;
    RandomStream random(seed, prefix, index++);
    float* data = values.data() + weight.offset;
    if (weight.shape.size() < 2) {
      std::fill(data, data + weight.count, 0.0f);
      // Gates lie in the order input, forget, cell, output.
      if (weight.name.ends_with("input.bias"))
        std::fill(data + weight.count / 4, data + weight.count / 2, 1.0f);
      continue;
    }
    const double limit = std::sqrt(6.0 / static_cast<double>(weight.rows() + weight.columns()));
    for (int64_t i = 0; i < weight.count; ++i)
      data[i] = static_cast<float>((2 * random.uniform() - 1) * limit);
  }
}

const Parameters::Weight& Parameters::find(std::string_view name) const {
  for (const auto& weight : weights_)
    if (weight.name == name) return weight;
  throw Error("the policy has no weight '{}'", name);
}

bool Parameters::has(std::string_view name) const {
  return std::any_of(weights_.begin(), weights_.end(),
                     [&](const Weight& weight) { return weight.name == name; });
}

void AdamState::reset(int64_t size) {
  first.assign(static_cast<size_t>(size), 0.0f);
  second.assign(static_cast<size_t>(size), 0.0f);
  steps = 0;
}

}  // namespace trinity
