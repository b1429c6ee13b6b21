#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "learn/parameters.h"
#include "search/placement/move_features.h"
#include "search/placement/move_ranker.h"

namespace trinity {

/// The ranker of moves: a perceptron over kMoveFeatures, or over the features of the step alone,
/// with ReLU layers and one output. Plain loops in a fixed order: the same scores and gradients on
/// every CPU. Not thread-safe: calls share buffers.
class MoveNetwork : public MoveRanker {
 public:
  /// hidden: widths of the layers; none: a linear score. memory_features: whether it reads the
  /// features after kStepFeatureCount. Throws ArgumentError for widths outside 1 to 1024 or more than 8.
  MoveNetwork(std::vector<int32_t> hidden, uint64_t seed, bool memory_features = false);

  bool reads_memory_features() const override { return inputs_ > kStepFeatureCount; }
  /// Number of features of a row that it reads, the leading ones.
  int32_t inputs() const { return inputs_; }
  void score(const float* features, int32_t count, float* scores) override;

  /// Adds the gradient of sum(slopes x scores) by the weights of the last score() to `gradient`;
  /// slopes: one for each of its rows.
  void add_gradient(const float* slopes, std::vector<float>& gradient);

  /// Shifts and scales features so that the features of `rows` have mean 0 and standard deviation
  /// 1; constant ones are only shifted.
  void standardise(const float* rows, size_t count);

  const std::vector<int32_t>& hidden() const { return hidden_; }
  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }

 private:
  struct Layer {
    int32_t inputs = 0, outputs = 0;
    int64_t weight = 0, bias = 0;  // offsets; weights are [outputs][inputs]
  };

  void pass(size_t l);

  int32_t inputs_;
  std::vector<int32_t> hidden_;
  Parameters
      parameters_;  // "shift" and "scale" of the features, "layer1.weight", "layer1.bias", ...
  std::vector<Layer> layers_;
  int32_t rows_ = 0;                             // of the last score()
  size_t stride_ = 0;                            // rows_ up to a multiple of a block
  std::vector<std::vector<float>> activations_;  // per layer and before the first: [unit][stride]
};

/// The state from which a training is resumed.
struct MoveTrainingState {
  AdamState adam;
  int64_t episodes = 0, problems = 0;
  uint64_t seed = 0;
  bool standardised = false;
};

/// The network as a file of safetensors, float32. `notes` are kept as they are: what it was trained
/// on, by which command. Throws FileError.
void save_move_network(const MoveNetwork& network, const std::string& path,
                       const std::map<std::string, std::string>& notes,
                       const MoveTrainingState* state = nullptr);

struct SavedMoveNetwork {
  std::shared_ptr<MoveNetwork> network;
  std::map<std::string, std::string> notes;
  std::optional<MoveTrainingState> state;
};
/// Throws FileError for a file that is damaged, foreign, or of other features than this program's.
SavedMoveNetwork load_move_network(const std::string& path);

}  // namespace trinity
