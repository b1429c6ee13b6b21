#include "search/spectral.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/stop.h"
#include "search/partition_weights.h"

namespace trinity {
namespace {

using Vector = std::vector<double>;

constexpr int kIterations = 30, kSteps = 300;
constexpr double kTolerance = 1e-6;
/// Added to the Laplacian so that it can be inverted where the graph falls apart.
constexpr double kShift = 1e-8;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void add(Vector& to, double factor, const Vector& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

/// The normalised Laplacian of a graph of units. A unit without edges has degree 1 and an edge to
/// itself, so that its row is 0.
class Laplacian {
 public:
  explicit Laplacian(const PartitionGraph& graph) : graph_(graph) {
    const auto n = static_cast<size_t>(graph.units());
    Vector degree(n, 0);
    for (size_t u = 0; u < n; ++u)
      for (auto e = graph.first[u]; e < graph.first[u + 1]; ++e)
        degree[u] += graph.bytes[static_cast<size_t>(e)];
    for (double& value : degree) value = value > 0 ? value : 1;
    for (const double value : degree) root_.push_back(std::sqrt(value));
    trivial_ = root_;
    const double length = std::sqrt(dot(root_, root_));
    for (double& value : trivial_) value /= length;
  }

  const Vector& root_degree() const { return root_; }

  /// Removes what lies along the eigenvector of eigenvalue 0.
  void project(Vector& x) const { add(x, -dot(x, trivial_), trivial_); }

  Vector times(const Vector& x) const {
    Vector y(x.size());
    for (size_t u = 0; u < x.size(); ++u) {
      double sum = 0;
      for (auto e = static_cast<size_t>(graph_.first[u]);
           e < static_cast<size_t>(graph_.first[u + 1]); ++e) {
        const auto other = static_cast<size_t>(graph_.neighbour[e]);
        sum += graph_.bytes[e] * (x[u] / root_[u] - x[other] / root_[other]);
      }
      y[u] = sum / root_[u] + kShift * x[u];
    }
    return y;
  }

  /// Conjugate gradients for times(x) = b, started at `x`.
  void solve(const Vector& b, Vector& x) const {
    Vector residual = b;
    add(residual, -1, times(x));
    project(residual);
    Vector direction = residual;
    double now = dot(residual, residual);
    const double enough = now * 1e-12;
    for (int step = 0; step < kSteps && now > enough && now > 0; ++step) {
      const auto image = times(direction);
      const double factor = now / dot(direction, image);
      add(x, factor, direction);
      add(residual, -factor, image);
      const double next = dot(residual, residual);
      for (size_t i = 0; i < x.size(); ++i) direction[i] = residual[i] + next / now * direction[i];
      now = next;
    }
    project(x);
  }

 private:
  const PartitionGraph& graph_;
  Vector root_, trivial_;
};

/// Positions along the second eigenvector.
Vector fiedler(const PartitionGraph& graph) {
  const Laplacian laplacian(graph);
  const auto& root = laplacian.root_degree();
  Vector x(root.size());
  for (size_t u = 0; u < x.size(); ++u) x[u] = static_cast<double>(u) * root[u];
  laplacian.project(x);
  double before = 0;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    poll_stop();
    const double length = std::sqrt(dot(x, x));
    if (!(length > 0)) break;
    for (double& value : x) value /= length;
    const double quotient = dot(x, laplacian.times(x));
    if (iteration > 0 && std::abs(before - quotient) <= kTolerance * before) break;
    before = quotient;
    Vector next = x;
    for (double& value : next) value /= quotient;
    laplacian.solve(x, next);
    x = std::move(next);
  }
  for (size_t u = 0; u < x.size(); ++u) x[u] /= root[u];
  return x;
}

/// How many of `order` go to the first side: the least cut within the balance, else the nearest.
size_t sweep(const PartitionGraph& graph, const std::vector<size_t>& order, double share,
             double imbalance) {
  const double total = std::accumulate(graph.combined.begin(), graph.combined.end(), 0.0);
  const double smaller = std::min(share, 1 - share) * total;
  const double heaviest = *std::max_element(graph.combined.begin(), graph.combined.end());
  const double slack = std::max(imbalance * smaller, std::min(heaviest, smaller / 2));
  std::vector<bool> first(order.size(), false);
  double weight = 0;
  int64_t cut = 0;
  size_t best = 1;
  std::pair<double, int64_t> least{std::numeric_limits<double>::infinity(), 0};
  for (size_t count = 1; count < order.size(); ++count) {
    const size_t u = order[count - 1];
    for (auto e = static_cast<size_t>(graph.first[u]); e < static_cast<size_t>(graph.first[u + 1]);
         ++e)
      cut += first[static_cast<size_t>(graph.neighbour[e])] ? -graph.bytes[e] : graph.bytes[e];
    first[u] = true;
    weight += graph.combined[u];
    const double outside = std::max(0.0, std::abs(weight - share * total) - slack);
    if (std::pair(outside, cut) >= least) continue;
    least = {outside, cut};
    best = count;
  }
  return best;
}

}  // namespace

Assignment spectral_partition(const PlacementSpace& space, const SpectralOptions& options) {
  if (!(options.imbalance > 0 && options.imbalance <= 10))
    throw ArgumentError(fmt::format("spectral: expected an imbalance above 0 and up to 10, got {}",
                                    options.imbalance));
  const PartitionWeights weights(space);
  return bisect_recursively(
      weights, [&](std::span<const int32_t> units, const PartitionShare& share) {
        const auto graph = weights.graph.restricted(units);
        const auto position = fiedler(graph);
        std::vector<size_t> order(units.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return position[a] < position[b]; });
        std::vector<bool> second(units.size(), true);
        const size_t count = sweep(graph, order, share.combined, options.imbalance);
        for (size_t i = 0; i < count; ++i) second[order[i]] = false;
        return second;
      });
}

}  // namespace trinity
