#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trinity {

/// All weights of a policy in one array, so that gradients of shards are added up, clipped and
/// applied in single passes, and a file is one block.
/// Not thread-safe; passes may read weights concurrently.
class Parameters {
 public:
  struct Weight {
    std::string name;  ///< "partition.first.weight", "schedule.forward.recurrent", ...
    std::vector<int64_t> shape;
    int64_t offset = 0, count = 0;
    int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
    int64_t columns() const { return rows() > 0 ? count / rows() : 0; }
  };

  void add(std::string name, std::vector<int64_t> shape);

  /// Fills every weight whose name begins with `prefix` from a random stream of its own: matrices
  /// uniform as Glorot has it, biases 0, forget gates of LSTM cells biased to 1.
  void initialise(std::string_view prefix, uint64_t seed);

  const std::vector<Weight>& weights() const { return weights_; }
  /// Throws Error when there is none of this name.
  const Weight& find(std::string_view name) const;
  bool has(std::string_view name) const;

  int64_t size() const { return static_cast<int64_t>(values.size()); }
  float* data(std::string_view name) { return values.data() + find(name).offset; }

  std::vector<float> values;

 private:
  std::vector<Weight> weights_;
};

/// Adam (Kingma and Ba 2015) over one array, with the moments' usual constants 0.9, 0.999, 1e-8.
struct AdamState {
  std::vector<float> first, second;  ///< moments
  int64_t steps = 0;

  void reset(int64_t size);
};

}  // namespace trinity
