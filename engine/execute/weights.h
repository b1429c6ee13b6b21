#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "execute/program.h"
#include "libtorch/torch.h"

namespace trinity {

/// A weight, or a number that the optimiser keeps for each of its elements, of the graph that a
/// lowered one was made of: put together from its parts.
struct NamedTensor {
  std::string name;  ///< "<operator>/<parameter>"
  at::Tensor values;
};

/// The weights of forward operators: all of a block, or a share of it (ZeRO 3), and what the
/// optimiser keeps for them. Trainable weights of an operator, one behind the other, are its bundle;
/// a share is a range of that. Operators of different workers may be used at once.
class Weights {
 public:
  using Tensors = std::vector<at::Tensor>;

  struct Options {
    uint64_t seed = 1;
    at::ScalarType real = at::kFloat;
    double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    int32_t micro_batches = 1;  ///< over which the gradient of an update is summed
    /// Updates make new weights, since backward passes that are under way need the old ones.
    bool keeps_old = false;
  };

  Weights(const Program& program, const Options& options);

  /// Draws the weights of an operator on its device: each is a block of a whole that its name and
  /// the seed determine.
  void make(int32_t op, const at::Device& device);

  /// All weights of an operator, trainable ones as leaves; empty where there is a share alone, or
  /// another process has them.
  const Tensors& of(int32_t op) const { return weights_[op]; }
  bool has_share(int32_t op) const { return shares_[op].defined(); }
  const at::Tensor& share(int32_t op) const { return shares_[op]; }
  /// Elements of its bundle.
  int64_t elements(int32_t op) const;
  int64_t share_elements(int32_t op) const;
  /// What there is of it: all, or the share.
  at::Tensor bundle(int32_t op) const;
  /// The weights that a bundle holds, as leaves for autograd.
  Tensors unbundle(int32_t op, const at::Tensor& bundle) const;
  /// Replaces trainable weights, or the share that there is of them.
  void assign(int32_t op, const at::Tensor& bundle);

  /// Runs an update: of whole weights (`gradient` the bundle's), or of a share (the share's), which
  /// it returns. The learning rate is of this step; `before`: updates of this step that were
  /// before.
  at::Tensor update(int32_t op, const Tensors& gradient, double learning_rate, int64_t before = 0);

  /// Where other processes have the weights of other operators: hands what an operator's process
  /// has, one number behind the other on the processor, to all of them, into their tensors of the
  /// same size. All processes call named() then.
  using Share = std::function<void(int32_t op, const at::Tensor& values)>;
  void share_by(Share share) { share_ = std::move(share); }

  /// Every weight as a whole, in order of name, then the optimiser's numbers ("<weight>#momentum",
  /// "#adam_m", "#adam_v") where `with_states`. Of replicas that differ between their meetings the
  /// mean; with states each ("<name>@<replica>").
  std::vector<NamedTensor> named(bool with_states) const;
  /// Sets what is there by these names, on all devices. Throws ArgumentError for a name that is
  /// missing and for other shapes.
  void set_named(const std::vector<NamedTensor>& values, bool with_states);
  /// Updates that have run, for Adam's correction of its means.
  int64_t updates = 0;

 private:
  static constexpr int32_t kAll = -1;
  struct Piece {
    int64_t begin = 0;
    at::Tensor values;  ///< one dimension
  };
  struct State {
    Tensors first, second;  ///< by weight, or of the share
  };
  /// Weights (`kind` empty), or the first or second number that an optimiser of this kind keeps for
  /// each, of a replica or of all.
  struct Select {
    std::string kind;
    bool second = false;
    int32_t replica = kAll;
  };

  const std::vector<int64_t> shape(int32_t op, size_t parameter) const;
  std::vector<Piece> weight_pieces(int32_t op) const;
  std::vector<Piece> state_pieces(int32_t op, const Tensors& states) const;
  /// What one step of an optimiser depends on beside its numbers.
  struct Step {
    std::string kind;
    double parts = 1, learning_rate = 0, number = 1;  ///< gradients summed; which update, from 1
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
  bool has_states_ = false;  ///< before the first update
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
