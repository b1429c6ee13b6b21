#include "base/error.h"
#include "learn/agent.h"
#include "learn/torch_policy.h"

namespace trinity {

AgentOptions AgentOptions::paper() {
  AgentOptions options;
  options.groups = 256;
  options.samples = 20;
  options.epochs = 5;
  options.learning_rate = 0.1;
  options.entropy_weight = 0;
  options.noise_amplitude = 0.1;
  options.noise_steps = 500;
  options.dropout = 0.3;
  options.hidden = 256;
  options.normalise_advantage = false;
  options.order_groups = false;
  options.switch_probability = 0;
  options.contiguity = 0;
  options.features.raw_time = true;
  options.features.mean_output_size = true;
  options.features.depth = false;
  options.features.node2vec.walk_length = 2;
  options.features.node2vec.walks_per_node = 80;
  options.features.node2vec.epochs = 50;
  return options;
}

AgentOptions AgentOptions::code() {
  AgentOptions options = paper();
  options.groups = 0;
  options.learning_rate = 0.01;
  options.learning_rate_decay = 0.95;
  options.clip = 0.3;
  options.temperature = 1;
  options.tanh_constant = 1;
  options.noise_amplitude = 0;
  options.noise_steps = 0;
  options.dropout = 0;
  options.linear_partition = true;
  options.baseline_every_epoch = true;
  options.exclude_failing_after = 2000;
  options.features.raw_time = false;
  options.features.mean_output_size = false;
  options.features.scale_by_mean = true;
  options.features.type_index = true;
  options.features.group_counts = true;
  return options;
}

namespace {

/// Calls visit(name, value, least, most) for every number among the options.
template <class Visit>
void each_number(const AgentOptions& o, Visit visit) {
  visit("groups", o.groups, 0, 4096);
  visit("samples", o.samples, 1, 4096);
  visit("epochs", o.epochs, 1, 100);
  visit("learning_rate", o.learning_rate, 1e-9, 10);
  visit("learning_rate_decay", o.learning_rate_decay, 1e-6, 1);
  visit("decay_every", o.decay_every, 1, 1e9);
  visit("decay_after", o.decay_after, 0, 1e9);
  visit("clip", o.clip, 1e-6, 10);
  visit("entropy_weight", o.entropy_weight, 0, 100);
  visit("gradient_norm", o.gradient_norm, 1e-9, 1e9);
  visit("temperature", o.temperature, 1e-6, 1e6);
  visit("tanh_constant", o.tanh_constant, 1e-6, 80);
  visit("baseline_n", o.baseline_n, 1, 1e9);
  visit("exclude_failing_after", o.exclude_failing_after, -1, 1e9);
  visit("noise_amplitude", o.noise_amplitude, 0, 100);
  visit("noise_steps", o.noise_steps, 0, 1e9);
  visit("dropout", o.dropout, 0, 0.99);
  visit("switch_probability", o.switch_probability, 0, 0.99);
  visit("contiguity", o.contiguity, 0, 1e6);
  visit("hidden", o.hidden, 1, 4096);
  visit("depth_waves", o.features.depth_waves, 0, 64);
  const auto& walks = o.features.node2vec;
  visit("node2vec.dimensions", walks.dimensions, 0, 100000);
  visit("node2vec.return_parameter", walks.return_parameter, 1e-9, 1e9);
  visit("node2vec.in_out_parameter", walks.in_out_parameter, 1e-9, 1e9);
  visit("node2vec.walk_length", walks.walk_length, 1, 100000);
  visit("node2vec.walks_per_node", walks.walks_per_node, 1, 100000);
  visit("node2vec.window", walks.window, 1, 100000);
  visit("node2vec.epochs", walks.epochs, 1, 100000);
  visit("node2vec.negatives", walks.negatives, 1, 100000);
  visit("node2vec.learning_rate", walks.learning_rate, 0, 100);
}

}  // namespace

void AgentOptions::check(int ranks) const {
  each_number(*this, [](const char* name, double value, double low, double high) {
    if (!(value >= low && value <= high))
      throw ArgumentError(
          fmt::format("option '{}': expected {} to {}, got {}", name, low, high, value));
  });
  if (samples < ranks)
    throw ArgumentError(fmt::format(
        "option 'samples': expected one or more for each of {} processes, got {}", ranks, samples));
  check_policy_device(device);
}

std::vector<std::pair<std::string, std::string>> AgentOptions::list() const {
  std::vector<std::pair<std::string, std::string>> all;
  all.emplace_back("seed", fmt::format("{}", seed));
  each_number(*this, [&](const char* name, double value, double, double) {
    all.emplace_back(name, fmt::format("{}", value));
  });
  const auto flag = [&](const char* name, bool value) {
    all.emplace_back(name, value ? "true" : "false");
  };
  constexpr const char* kRatios[] = {"action", "group_mean", "joint"};
  constexpr const char* kMasks[] = {"batch", "sample", "fresh", "off"};
  all.emplace_back("ratio", kRatios[static_cast<size_t>(ratio)]);
  all.emplace_back("dropout_mask", kMasks[static_cast<size_t>(dropout_mask)]);
  all.emplace_back("device", device);
  flag("baseline_every_epoch", baseline_every_epoch);
  flag("linear_partition", linear_partition);
  flag("normalise_advantage", normalise_advantage);
  flag("order_groups", order_groups);
  flag("plain_torch", plain_torch);
  flag("raw_time", features.raw_time);
  flag("mean_output_size", features.mean_output_size);
  flag("depth_feature", features.depth);
  flag("scale_by_mean", features.scale_by_mean);
  flag("type_index", features.type_index);
  flag("group_counts", features.group_counts);
  return all;
}

}  // namespace trinity
