#include "learn/agent_options.h"

#include "base/late.h"

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
  options.normalize_advantage = false;
  options.order_groups = false;
  options.switch_probability = 0;
  options.contiguity = 0;
  options.ratio = Ratio::joint;
  options.layers = 2;
  options.each_operator = true;
  options.features.raw_time = true;
  options.features.raw_output = true;
  options.features.group_time = false;
  options.features.adjacency_out = true;
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
  options.ratio = Ratio::action;
  options.layers = 1;
  options.each_operator = false;
  options.features.raw_output = false;
  options.features.group_time = true;
  options.features.adjacency_out = false;
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

AgentOptions AgentOptions::scratch() {
  AgentOptions options;
  options.contiguity = 0;
  options.switch_probability = 0;
  options.action_credit = true;
  options.dealt = 0.98;
  options.schedule_learns = false;
  options.entropy_weight = 1;
  options.entropy_updates = 300;
  return options;
}

namespace {

/// Every value as text.
struct Texts {
  std::vector<std::pair<std::string, std::string>> all;

  void operator()(const char* name, double value, double, double, const char*) {
    all.emplace_back(name, fmt::format("{}", value));
  }
  void operator()(const char* name, bool value, const char*) {
    all.emplace_back(name, value ? "true" : "false");
  }
  void operator()(const char* name, const std::string& value, const char*) {
    all.emplace_back(name, value);
  }
  template <class Choice, size_t Words>
  void operator()(const char* name, Choice value, const std::array<const char*, Words>& words,
                  const char*) {
    all.emplace_back(name, words[static_cast<size_t>(value)]);
  }
};

}  // namespace

void AgentOptions::check(int ranks) const {
  each_option(*this, OptionRanges{});
  if (samples < ranks)
    throw ArgumentError("option 'samples': expected one or more for each of {} processes, got {}", ranks, samples);
  if (action_credit && (ratio != Ratio::action || ranks > 1))
    throw ArgumentError("option 'credit': 'action' needs ratio = 'action' and one process");
  if (entropy_updates > 0 && entropy_weight <= 0)
    throw ArgumentError("option 'entropy_updates' needs 'entropy_weight' > 0, got 0");
  if (device != "cpu")
    late<void(const std::string&)>(kTorchPart, "trinity_check_policy_device")(device);
}

std::vector<std::pair<std::string, std::string>> AgentOptions::list() const {
  Texts texts;
  texts.all.emplace_back("seed", fmt::format("{}", seed));
  each_option(*this, texts);
  return std::move(texts.all);
}

}  // namespace trinity
