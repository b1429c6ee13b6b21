#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "execute/program.h"
#include "libtorch/torch.h"

namespace trinity {

/// A full weight of the graph before lowering, or an optimiser state of the same shape, assembled
/// from its shards.
struct NamedTensor {
  std::string name;  ///< "<operator>/<parameter>"
  at::Tensor values;
};

/// Weights of forward operators (whole blocks, or ZeRO-3 shards) and their optimiser state. The
/// bundle of an operator is the concatenation of its trainable weights; a shard is a range of the
/// bundle. Not thread-safe for one operator; operators of different workers may be used
/// concurrently.
class Weights {
 public:
  using Tensors = std::vector<at::Tensor>;

  struct Options {
    uint64_t seed = 1;
    at::ScalarType real = at::kFloat;
    double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    int32_t micro_batches = 1;  ///< number over which the gradient of an update is summed
    /// Updates create new weights, because backward passes in flight need the old ones.
    bool keeps_old = false;
  };

  Weights(const Program& program, const Options& options);

  /// Initialises the weights of an operator on its device: each is a block of a full weight that
  /// depends only on its name and the seed.
  void make(int32_t op, const at::Device& device);

  /// All weights of an operator, trainable ones as autograd leaves; empty if only a shard is here
  /// or another process owns them.
  const Tensors& of(int32_t op) const { return weights_[op]; }
  bool has_share(int32_t op) const { return shares_[op].defined(); }
  const at::Tensor& share(int32_t op) const { return shares_[op]; }
  /// Number of elements of its bundle.
  int64_t elements(int32_t op) const;
  int64_t share_elements(int32_t op) const;
  /// The stored part of the bundle: all of it, or the shard.
  at::Tensor bundle(int32_t op) const;
  /// The weights in a bundle, as autograd leaves.
  Tensors unbundle(int32_t op, const at::Tensor& bundle) const;
  /// Replaces trainable weights, or the shard that is stored here.
  void assign(int32_t op, const at::Tensor& bundle);

  /// Runs an update of full weights (`gradient` of the bundle) or of a shard (`gradient` of the
  /// shard), which it returns. learning_rate: of this step; before: number of earlier updates in
  /// this step.
  at::Tensor update(int32_t op, const Tensors& gradient, double learning_rate, int64_t before = 0);

  /// For weights owned by other processes: broadcasts the values that an operator's process owns,
  /// flattened on the CPU, to all processes, into their tensors of equal size. Collective: all
  /// processes call named() then.
  using Share = std::function<void(int32_t op, const at::Tensor& values)>;
  void share_by(Share share) { share_ = std::move(share); }

  /// All weights in full, by name, then the optimiser state ("<weight>#momentum", "#adam_m",
  /// "#adam_v") if `with_states`. If replicas differ between synchronisations: their mean; with
  /// states, each of them ("<name>@<replica>").
  std::vector<NamedTensor> named(bool with_states) const;
  /// Sets the weights of these names on all devices. Throws ArgumentError for a missing name and
  /// for other shapes.
  void set_named(const std::vector<NamedTensor>& values, bool with_states);
  /// Number of updates that have run, for Adam's bias correction.
  int64_t updates = 0;

 private:
  static constexpr int32_t kAll = -1;
  struct Piece {
    int64_t begin = 0;
    at::Tensor values;  ///< flattened
  };
  struct State {
    Tensors first, second;  ///< by weight, or of the shard
  };
  /// Selects weights (`kind` empty), or the first or second state of this type of optimiser, of one
  /// replica or of all.
  struct Select {
    std::string kind;
    bool second = false;
    int32_t replica = kAll;
  };

  const std::vector<int64_t> shape(int32_t op, size_t parameter) const;
  std::vector<Piece> weight_pieces(int32_t op) const;
  std::vector<Piece> state_pieces(int32_t op, const Tensors& states) const;
  /// Parameters of one optimiser step besides its state.
  struct Step {
    std::string kind;
    /// parts: gradients summed; number: of the update, from 1
    double parts = 1, learning_rate = 0, number = 1;
  };
  void step(const Step& about, at::Tensor& weight, const at::Tensor& gradient, State& state,
            size_t number) const;
  std::string key(int32_t op) const;
  bool includes(const Select& select, int32_t op) const;
  std::vector<Piece> pieces(const Select& select, int32_t op) const;
  std::vector<Piece> shared_pieces(const Select& select, int32_t op) const;
  void collect(const Select& select, const std::string& suffix,
               std::vector<NamedTensor>& into) const;
  void spread(const Select& select, const std::string& suffix,
              const std::vector<NamedTensor>& from) const;
  using ByName = std::map<std::string, const at::Tensor*>;
  at::Tensor bundle_of(int32_t op, const std::string& suffix, const ByName& given) const;
  void make_states();
  Share share_;
  bool has_states_ = false;  ///< false before the first update
  std::vector<NamedTensor> mean_of_replicas() const;
  int32_t update_of(int32_t op) const { return updates_[op]; }
  std::string kind_of(int32_t op) const;

  const Program& program_;
  const Graph& graph_;
  Options options_;
  std::vector<Tensors> weights_;     // per operator
  std::vector<at::Tensor> shares_;   // the same
  std::vector<State> states_;        // per forward operator
  std::vector<int32_t> updates_;     // per forward operator: its update, or -1
};

}  // namespace trinity
