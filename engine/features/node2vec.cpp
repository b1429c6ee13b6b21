#include "features/node2vec.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/stop.h"
#include "features/skip_gram.h"

namespace trinity {
namespace {

using Neighbours = std::vector<std::vector<int32_t>>;

/// The next node of a walk from `previous` to `at`: weight 1/p to go back, 1 to common neighbours,
/// 1/q otherwise.
int32_t next_node(const Neighbours& neighbours, const Node2VecOptions& options, int32_t previous,
                  int32_t at, std::vector<double>& weights, RandomStream& random) {
  const auto& choices = neighbours[at];
  if (previous < 0) return choices[random.below(choices.size())];
  const auto& near = neighbours[previous];
  weights.clear();
  double sum = 0;
  for (const int32_t choice : choices) {
    if (choice == previous)
      sum += 1 / options.return_parameter;
    else if (std::binary_search(near.begin(), near.end(), choice))
      sum += 1;
    else
      sum += 1 / options.in_out_parameter;
    weights.push_back(sum);
  }
  const auto at_weight = std::upper_bound(weights.begin(), weights.end(), random.uniform() * sum);
  const auto index = std::min<std::ptrdiff_t>(at_weight - weights.begin(),
                                              static_cast<std::ptrdiff_t>(choices.size()) - 1);
  return choices[index];
}

std::vector<std::vector<int32_t>> make_walks(const Neighbours& neighbours,
                                             const Node2VecOptions& options, RandomStream& random) {
  std::vector<std::vector<int32_t>> walks;
  std::vector<double> weights;
  for (int32_t round = 0; round < options.walks_per_node; ++round) {
    for (size_t start = 0; start < neighbours.size(); ++start) {
      poll_stop();
      std::vector<int32_t> walk = {static_cast<int32_t>(start)};
      int32_t previous = -1;
      while (static_cast<int32_t>(walk.size()) < options.walk_length &&
             !neighbours[walk.back()].empty()) {
        const int32_t next = next_node(neighbours, options, previous, walk.back(), weights, random);
        previous = walk.back();
        walk.push_back(next);
      }
      walks.push_back(std::move(walk));
    }
  }
  return walks;
}

/// Skip-gram with negative sampling over node pairs at most `window` apart.
class SkipGram {
 public:
  SkipGram(size_t nodes, const Node2VecOptions& options, RandomStream& random)
      : options_(options),
        random_(random),
        dimensions_(static_cast<size_t>(options.dimensions)),
        vectors_(nodes * dimensions_),
        context_(nodes * dimensions_, 0.0f),
        step_(dimensions_) {
    for (float& value : vectors_)
      value = static_cast<float>((random.uniform() - 0.5) / options.dimensions);
  }

  void train(const std::vector<std::vector<int32_t>>& walks) {
    make_noise(walks);
    for (int32_t epoch = 0; epoch < options_.epochs; ++epoch) {
      const double progress = static_cast<double>(epoch) / options_.epochs;
      rate_ = static_cast<float>(options_.learning_rate * (1 - progress));
      for (const auto& walk : walks) {
        poll_stop();
        train_walk(walk);
      }
    }
  }

  std::vector<float> take() { return std::move(vectors_); }

 private:
  /// Negatives are sampled in proportion to occurrence^(3/4), by Walker's alias method: every entry
  /// holds its own node with some probability and one other node otherwise.
  void make_noise(const std::vector<std::vector<int32_t>>& walks) {
    const size_t nodes = vectors_.size() / dimensions_;
    std::vector<double> share(nodes, 0);
    for (const auto& walk : walks)
      for (const int32_t node : walk) ++share[node];
    double sum = 0;
    for (double& count : share) sum += count = std::sqrt(count * std::sqrt(count));
    std::vector<size_t> small, large;
    for (size_t i = 0; i < nodes; ++i) {
      share[i] *= static_cast<double>(nodes) / sum;
      (share[i] < 1 ? small : large).push_back(i);
    }
    noise_.assign(nodes, {1, 0});
    while (!small.empty() && !large.empty()) {
      const size_t low = small.back(), high = large.back();
      small.pop_back();
      noise_[low] = {share[low], static_cast<int32_t>(high)};
      share[high] -= 1 - share[low];
      if (share[high] >= 1) continue;
      large.pop_back();
      small.push_back(high);
    }
  }

  int32_t negative() {
    const double at = random_.uniform() * static_cast<double>(noise_.size());
    const auto entry = static_cast<size_t>(at);
    const double rest = at - static_cast<double>(entry);
    return rest < noise_[entry].own ? static_cast<int32_t>(entry) : noise_[entry].other;
  }

  void train_walk(const std::vector<int32_t>& walk) {
    const auto length = static_cast<int32_t>(walk.size());
    for (int32_t i = 0; i < length; ++i) {
      const int32_t last = std::min(length - 1, i + options_.window);
      for (int32_t j = std::max(0, i - options_.window); j <= last; ++j)
        if (j != i) train_pair(walk[i], walk[j]);
    }
  }

  void train_pair(int32_t centre, int32_t other) {
    float* v = vectors_.data() + static_cast<size_t>(centre) * dimensions_;
    std::fill(step_.begin(), step_.end(), 0.0f);
    for (int32_t i = 0; i <= options_.negatives; ++i) {
      const int32_t target = i == 0 ? other : negative();
      if (i > 0 && target == other) continue;
      float* c = context_.data() + static_cast<size_t>(target) * dimensions_;
      skip_gram(static_cast<int64_t>(dimensions_), rate_, i == 0 ? 1.0f : 0.0f, v, c, step_.data());
    }
    for (size_t k = 0; k < dimensions_; ++k) v[k] += step_[k];
  }

  const Node2VecOptions& options_;
  RandomStream& random_;
  size_t dimensions_;
  struct Noise {
    double own;
    int32_t other;
  };
  std::vector<float> vectors_, context_, step_;
  std::vector<Noise> noise_;
  float rate_ = 0;
};

}  // namespace

void standardise_columns(std::vector<float>& matrix, int32_t columns) {
  const auto width = static_cast<size_t>(columns);
  const size_t rows = matrix.size() / width;
  for (size_t c = 0; c < width; ++c) {
    double sum = 0, squares = 0;
    for (size_t r = 0; r < rows; ++r) sum += matrix[r * width + c];
    const double mean = sum / static_cast<double>(rows);
    for (size_t r = 0; r < rows; ++r) {
      const double difference = matrix[r * width + c] - mean;
      squares += difference * difference;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(rows));
    const double scale = deviation > 1e-12 ? 1 / deviation : 0;
    for (size_t r = 0; r < rows; ++r)
      matrix[r * width + c] = static_cast<float>((matrix[r * width + c] - mean) * scale);
  }
}

std::vector<float> node2vec(const std::vector<std::vector<int32_t>>& neighbours,
                            const Node2VecOptions& options, uint64_t seed) {
  RandomStream random(seed, "node2vec");
  const auto walks = make_walks(neighbours, options, random);
  SkipGram model(neighbours.size(), options, random);
  model.train(walks);
  auto vectors = model.take();
  standardise_columns(vectors, options.dimensions);
  return vectors;
}

}  // namespace trinity
