#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "features/feature_options.h"

// Every option of the agent, once. Numbers of papers/notes.md "Trinity: contradictions and gaps"
// are cited by options that are one of its readings.

namespace trinity {

/// The probability ratio of PPO.
enum class Ratio : uint8_t {
  action,  ///< every unit's group and every group's device has its own (the released code)
  joint,   ///< one for all actions of a sample, as eq. 14 of papers/notes.md is written
};

/// Everything that may be set about Trinity's policy; each_option() says what each is and may be.
/// The defaults are what works best here; paper() gives the settings that the paper prints, code()
/// the settings of the released code (papers/notes.md "Trinity: settings").
struct AgentOptions {
  uint64_t seed = 1;
  int32_t groups = 0;
  int32_t samples = 16;
  int32_t epochs = 4;
  double learning_rate = 2e-3;
  double learning_rate_decay = 1;
  int32_t decay_every = 50;
  int32_t decay_after = 400;
  double clip = 0.2;
  Ratio ratio = Ratio::action;
  bool action_credit = false;  ///< see CreditEstimator
  double dealt = 0;
  bool schedule_learns = true;
  double entropy_last = 0.05;
  int32_t entropy_updates = 0;
  double entropy_weight = 1e-2;
  double gradient_norm = 1.0;
  double temperature = 10;
  double tanh_constant = 5;
  double baseline_n = 19;
  bool baseline_every_epoch = false;
  int32_t exclude_failing_after = -1;
  double noise_amplitude = 0;
  int32_t noise_steps = 0;
  double dropout = 0;
  bool linear_partition = false;
  bool normalize_advantage = true;
  bool order_groups = true;
  double switch_probability = 0.1;
  double contiguity = 6;
  /// The paper's "hidden size 256" is 128 read as the decoder's, 256 as the released code reads it;
  /// on InceptionV3 64, 96 and 128 find equally good placements in 1200 samples.
  int32_t hidden = 96;
  int32_t layers = 1;
  bool each_operator = false;
  FeatureOptions features;
  std::string device = "cpu";

  static AgentOptions paper();
  static AgentOptions code();
  /// Learns from nothing, with a group per device: no prior on placements, an advantage for every
  /// action, and an entropy weight that falls (scripts/studies/policy/RESULTS.md).
  static AgentOptions scratch();

  /// Every option with its value as text, in a fixed order. Two runs that agree in all of them and
  /// in their problem are the same.
  std::vector<std::pair<std::string, std::string>> list() const;
  /// Throws ArgumentError naming the first option out of range, fewer samples than the `ranks` of
  /// the job, options that exclude each other, or a device that is not there.
  void check(int ranks) const;
};

/// How batches are sampled and how PPO learns from them.
template <class Options, class Visit>
void each_learning_option(Options& o, Visit&& visit) {
  visit("groups", o.groups, 0, 4096, "groups of units; 0: min(256, 20 x devices, units) (item 8)");
  visit("samples", o.samples, 1, 4096, "placements per policy update");
  visit("epochs", o.epochs, 1, 100, "gradient steps on one batch of samples");
  visit("learning_rate", o.learning_rate, 1e-9, 10, "of Adam (item 7)");
  visit("learning_rate_decay", o.learning_rate_decay, 1e-6, 1,
        "factor after every decay_every gradient steps beyond decay_after; 1: none");
  visit("decay_every", o.decay_every, 1, 1e9, "gradient steps between two decays");
  visit("decay_after", o.decay_after, 0, 1e9, "gradient steps without decay");
  visit("clip", o.clip, 1e-6, 10, "PPO's epsilon (item 14)");
  visit("ratio", o.ratio, std::array{"action", "joint"},
        "probability ratio of PPO: of single actions, or of whole samples (item 13)");
  visit("credit", o.action_credit, std::array{"sample", "action"},
        "credit of an action: its sample's reward, or its contribution to it in the timeline of "
        "the sample's step");
  visit("entropy_weight", o.entropy_weight, 0, 100, "bonus per action, in units of the advantage");
  visit("entropy_updates", o.entropy_updates, 0, 1e9,
        "updates over which entropy_weight decays geometrically to entropy_last; 0: never");
  visit("entropy_last", o.entropy_last, 1e-9, 100, "final entropy_weight");
  visit("gradient_norm", o.gradient_norm, 1e-9, 1e9, "global norm that gradients are clipped to");
  visit("temperature", o.temperature, 1e-6, 1e6, "T of logits C tanh(u / T) (eq. 9)");
  visit("tanh_constant", o.tanh_constant, 1e-6, 80, "C of logits C tanh(u / T)");
  visit("baseline_n", o.baseline_n, 1, 1e9, "the baseline decays by (N - 1) / (N + 1) (eq. 15)");
  visit("baseline_every_epoch", o.baseline_every_epoch,
        "update the baseline in every gradient step (the released code), not in every batch");
  visit("exclude_failing_after", o.exclude_failing_after, -1, 1e9,
        "gradient steps after which samples that failed are left out of loss and baseline (the "
        "released code: 2000); -1: never");
  visit("noise_amplitude", o.noise_amplitude, 0, 100,
        "uniform noise on logits while sampling, outside the ratio");
  visit("noise_steps", o.noise_steps, 0, 1e9, "batches with noise (item 16)");
}

/// Visits the options of the networks and of their initial weights.
template <class Options, class Visit>
void each_network_option(Options& o, Visit&& visit) {
  visit("dropout", o.dropout, 0, 0.99,
        "in the partition network, after its first layer; one mask per batch (item 12)");
  visit("partition_network", o.linear_partition, std::array{"mlp", "linear"},
        "64 and 128 wide with ReLU, or one linear layer of 64 (the released code)");
  visit("normalize_advantage", o.normalize_advantage,
        "advantages divided by their root mean square in the batch or its moving average, "
        "whichever is larger: noise does not shake a policy that has settled");
  visit("order_groups", o.order_groups,
        "groups of a sample numbered in topological order, empty ones last: the schedule network "
        "walks from inputs to loss");
  visit("switch_probability", o.switch_probability, 0, 0.99,
        "probability that the untrained schedule network leaves the previous group's device: first "
        "placements then have few cuts; 0: all devices equally likely");
  visit("dealt", o.dealt, 0, 0.99,
        "probability that the untrained schedule network gives group g to device g mod devices; 0: "
        "all devices equally likely");
  visit("schedule_learns", o.schedule_learns,
        "whether the schedule network is trained, or keeps its first weights");
  visit("contiguity", o.contiguity, 0, 1e6,
        "how strongly the untrained partition network puts neighbours in the order of work into "
        "one group; 0: not at all");
  visit("hidden", o.hidden, 1, 4096,
        "width of each direction of the encoder; the decoder's is twice that");
  visit("layers", o.layers, 1, 2, "LSTM layers of encoder and decoder");
  visit("actions", o.each_operator, std::array{"units", "operators"},
        "what samples a group: every colocation unit, or every operator (the paper), where the "
        "first one of a unit decides for all");
}

/// Visits (base/options.h) all of AgentOptions but the seed.
template <class Options, class Visit>
void each_option(Options& o, Visit&& visit) {
  each_learning_option(o, visit);
  each_network_option(o, visit);
  visit("device", o.device,
        "where the policy trains: 'cpu', or 'cuda:0' and the like where LibTorch has CUDA");
  each_feature_option(o.features, visit);
}

}  // namespace trinity
