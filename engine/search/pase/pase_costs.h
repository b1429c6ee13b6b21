#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/pase/pase_layers.h"
#include "selection/selection.h"

namespace trinity {

/// Splits of a layer that PaSE considers, and the machine of its cost model.
struct PaseOptions {
  enum class Factors : uint8_t {
    divisors,       ///< divisors of a dimension's size: the reference code
    powers_of_two,  ///< up to its size
    all,            ///< every number up to its size: the paper's definition
  };
  int32_t devices = 8;        ///< p: upper limit of the product of a layer's factors
  double peak_flops = 10e12;  ///< FLOP/s per device
  double bandwidth_bytes_per_s = 16e9;
  double word_bytes = 8;  ///< bytes per element in transfers
  /// The reference code's smallest block: a factor c of a dimension of size n requires n / c >=
  /// cutoff, unless only factors below it remain (then only 1). Its graphs use 4; RNNLM and
  /// Transformer 1.
  int64_t cutoff = 4;
  Factors factors = Factors::divisors;
  bool halo = false;       ///< also split convolutions along height and width, with a halo exchange
  /// add up several tensors between two layers (code: only the last counts)
  bool sum_edges = false;

  /// r of the paper: FLOP in the time of one transferred word.
  double flops_per_word() const { return peak_flops / (bandwidth_bytes_per_s / word_bytes); }
};

template <>
inline constexpr auto kWords<PaseOptions::Factors> = words("factors", "divisors", "powers_of_two", "all");

/// One factor per dimension of a layer.
using Configuration = std::vector<int32_t>;

/// All configurations of a layer in lexicographic order; the first is all ones. Throws LimitError
/// for more than 2^20.
std::vector<Configuration> layer_configurations(const PaseLayer& layer, const PaseOptions& options);

/// Cost of a layer on a device per training step, in FLOP: computation, and transferred words times
/// flops_per_word().
struct LayerCost {
  double compute = 0, communication = 0;
  double total() const { return compute + communication; }
};

/// The reference cost model (papers/notes.md "PaSE: cost model"), with block sizes m, n, k, e, ...
/// (size / factor):
///   matmul         3 m n k + 3 pointwise m n, all-reduces of m n over k's factor, m k over n's and
///                  n k over m's, all times the batch blocks
///   pooling        one FLOP per output; a halo of the input if h or w is split
///   normalisation  16 e; 4 all-reduces of e / a over a's factor and of a over the others (a: the
///                  coupled dimension)
///   mean           an all-reduce of e over the reduced factors
///   softmax        4 e + e A; all-reduces of e / a, e A / a and e / a over a's factor (A: whole)
///   loss           4 e + 2 e / a, and 2 e / a words if a is split
///   lstm           a product of m = s b, 4 n, 2 k with 3 point-wise, batch l; L S times the words
///                  from a cell's output (b n) to its input (b k)
///   elementwise    (1 + pointwise) e
///   movement       nothing
/// An all-reduce of x words over q devices is 2 (x / q) (q - 1) words.
LayerCost layer_cost(const PaseLayer& layer, const Configuration& configuration,
                     const PaseOptions& options);

/// 2 max(0, needed - overlap) words times flops_per_word(). needed: the reader's block; overlap:
/// the product of the smaller extents of both blocks, 0 if the reader has more parts.
double edge_cost(const PaseEdge& edge, const Configuration& from, const Configuration& to,
                 const PaseOptions& options);

/// A layer graph with its configurations and cost tables.
struct PaseProblem {
  PaseGraph graph;
  PaseOptions options;
  std::vector<std::vector<Configuration>> configurations;  ///< per layer
  SelectionProblem selection;  ///< one node per layer, one strategy per configuration

  /// The strategy of a layer with these factors, or -1.
  int32_t find(int32_t layer, const Configuration& configuration) const;
};

/// Cost of a strategy in FLOP, whether or not its configurations are in the search space.
struct PaseCost {
  double compute = 0;        ///< of layers
  double communication = 0;  ///< inside layers
  double edges = 0;          ///< between layers
  double total() const { return compute + communication + edges; }
};

/// Cost of one configuration per layer. Throws ArgumentError for a wrong number of layers or
/// factors, a factor below 1 or above its dimension's size, and more parts than devices.
PaseCost price_strategy(const PaseProblem& problem, std::span<const Configuration> strategy);

/// Builds all tables. Throws ArgumentError for invalid options, LimitError for more than 2^28 table
/// entries.
PaseProblem pase_problem(PaseGraph graph, const PaseOptions& options);

}  // namespace trinity
