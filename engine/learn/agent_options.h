#pragma once

#include <array>

#include "features/feature_options.h"
#include "learn/agent.h"

// Every option of the agent, once: its name for scripts, files and errors, and what it may be.

namespace trinity {

/// each_feature_option() for all of AgentOptions but the seed; visit(name, text) as well.
template <class Options, class Visit>
void each_option(Options& o, Visit&& visit) {
  visit("groups", o.groups, 0, 4096);
  visit("samples", o.samples, 1, 4096);
  visit("epochs", o.epochs, 1, 100);
  visit("learning_rate", o.learning_rate, 1e-9, 10);
  visit("learning_rate_decay", o.learning_rate_decay, 1e-6, 1);
  visit("decay_every", o.decay_every, 1, 1e9);
  visit("decay_after", o.decay_after, 0, 1e9);
  visit("clip", o.clip, 1e-6, 10);
  visit("ratio", o.ratio, std::array{"action", "group_mean", "joint"});
  visit("entropy_weight", o.entropy_weight, 0, 100);
  visit("gradient_norm", o.gradient_norm, 1e-9, 1e9);
  visit("temperature", o.temperature, 1e-6, 1e6);
  visit("tanh_constant", o.tanh_constant, 1e-6, 80);
  visit("baseline_n", o.baseline_n, 1, 1e9);
  visit("baseline_every_epoch", o.baseline_every_epoch);
  visit("exclude_failing_after", o.exclude_failing_after, -1, 1e9);
  visit("noise_amplitude", o.noise_amplitude, 0, 100);
  visit("noise_steps", o.noise_steps, 0, 1e9);
  visit("dropout", o.dropout, 0, 0.99);
  visit("dropout_mask", o.dropout_mask, std::array{"batch", "sample", "fresh", "off"});
  visit("partition_network", o.linear_partition, std::array{"mlp", "linear"});
  visit("normalise_advantage", o.normalise_advantage);
  visit("order_groups", o.order_groups);
  visit("switch_probability", o.switch_probability, 0, 0.99);
  visit("contiguity", o.contiguity, 0, 1e6);
  visit("partition_gain", o.partition_gain, 0, 1e6);
  visit("hidden", o.hidden, 1, 4096);
  visit("device", o.device);
  visit("plain_torch", o.plain_torch);
  each_feature_option(o.features, visit);
}

}  // namespace trinity
