// How the agent learns: update() and the gradient steps that it consists of.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/stop.h"
#include "learn/agent_impl.h"

namespace trinity {
namespace {

/// Weights that one task of the pool updates.
constexpr int64_t kBlock = 1 << 15;

/// Mean over the samples that count.
template <class Value>
double mean_of(std::span<const double> rewards, std::span<const uint8_t> weight, Value value) {
  double sum = 0, count = 0;
  for (size_t s = 0; s < rewards.size(); ++s) {
    sum += weight[s] ? value(rewards[s]) : 0;
    count += weight[s];
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

double Agent::Impl::learning_rate() const {
  const int64_t beyond = adam.steps - options.decay_after;
  if (beyond <= 0 || options.learning_rate_decay == 1) return options.learning_rate;
  const auto times = static_cast<double>(beyond / options.decay_every);
  return options.learning_rate * std::pow(options.learning_rate_decay, times);
}

double Agent::Impl::entropy_weight() const {
  if (options.entropy_updates == 0) return options.entropy_weight;
  const double passed =
      std::min(1.0, static_cast<double>(batch - 1) / static_cast<double>(options.entropy_updates));
  return options.entropy_weight * std::pow(options.entropy_last / options.entropy_weight, passed);
}

void Agent::Impl::move_baseline(double mean) {
  const double n = options.baseline_n;
  baseline = (2 * mean + (n - 1) * baseline) / (n + 1);
}

std::vector<double> Agent::Impl::advantages(std::span<const double> rewards, double scale) const {
  std::vector<double> result;
  for (const double reward : rewards) result.push_back((reward - baseline) * scale);
  return result;
}

UpdateReport Agent::Impl::update(std::span<const double> rewards, std::span<const uint8_t> weight,
                                 std::span<const RewardSlopes> slopes) {
  UpdateReport report;
  if (options.action_credit) assign_credit(slopes);
  const bool any = std::count(weight.begin(), weight.end(), uint8_t{1}) > 0;
  report.mean_reward =
      any ? mean_of(rewards, weight, [](double r) { return r; })
          : mean_of(rewards, std::vector<uint8_t>(rewards.size(), 1), [](double r) { return r; });
  if (std::isnan(baseline)) baseline = report.mean_reward;
  const double batch_squares =
      mean_of(rewards, weight, [&](double r) { return (r - baseline) * (r - baseline); });
  const double n = options.baseline_n;
  squares = std::isnan(squares) ? batch_squares : (2 * batch_squares + (n - 1) * squares) / (n + 1);
  const bool normalise = options.normalize_advantage && squares > 1e-24;
  const double scale = normalise ? 1 / std::sqrt(std::max(batch_squares, squares)) : 1;
  for (int32_t index = 0; index < options.epochs; ++index) {
    epoch(index, advantages(rewards, scale), weight, report);
    if (any && options.baseline_every_epoch) move_baseline(report.mean_reward);
  }
  if (any && !options.baseline_every_epoch) move_baseline(report.mean_reward);
  report.baseline = baseline;
  forget_batch();
  return report;
}

/// Masks of this gradient step, and old log-probabilities where they are to be without masks.
void Agent::Impl::refresh_masks(int32_t epoch) {
  if (options.dropout <= 0) return;
  if (options.dropout_mask == DropoutMask::fresh) {
    const auto epochs = static_cast<uint64_t>(options.epochs);
    draw_masks((uint64_t{1} << 40) + batch * epochs + static_cast<uint64_t>(epoch));
  }
  if (options.dropout_mask == DropoutMask::off && epoch == 0) {
    partition->set_masks({});
    forward_partition();
    gather_groups();
    old_group = group_taken;
  }
}

void Agent::Impl::epoch(int32_t index, std::span<const double> advantage,
                        std::span<const uint8_t> weight, UpdateReport& report) {
  refresh_masks(index);
  // The first forward pass was the sampling's.
  const bool masked = options.dropout > 0 && options.dropout_mask == DropoutMask::fresh;
  if (index > 0 || masked || torch_policy) forward();
  {
    const Stopwatch watch(profile.objective_s);
    const auto first = static_cast<size_t>(first_sample), count = static_cast<size_t>(samples);
    const auto all = std::count(weight.begin(), weight.end(), uint8_t{1});
    const Objective objective =
        set_coefficients(advantage.subspan(first, count), weight.subspan(first, count),
                         std::max(1.0, static_cast<double>(all)));
    report_objective(objective, report);
  }
  // Entropies are means over the samples, the units' entropies the same in every process.
  backward(entropy_weight() * own_share());
  if (peers.size > 1) {
    const Stopwatch watch(profile.exchange_s);
    peers.sum_floats(gradient);
  }
  report.learning_rate = learning_rate();
  report.gradient_norm = apply(report.learning_rate);
}

/// Objective, entropies and loss of the whole batch.
void Agent::Impl::report_objective(const Objective& objective, UpdateReport& report) {
  double on_devices = 0;
  for (const auto& pass : passes) on_devices += pass.entropy();
  on_devices /= static_cast<double>(device_taken.size());
  if (torch_policy) on_devices = torch_policy->devices_entropy();
  double sums[] = {objective.value, objective.clipped, own_share() * partition->entropy(),
                   own_share() * on_devices};
  if (peers.size > 1) {
    const Stopwatch watch(profile.exchange_s);
    peers.sum_doubles(sums);
  }
  report.clipped_share = sums[1];
  report.entropy_groups = sums[2];
  report.entropy_devices = sums[3];
  report.loss = -sums[0] - entropy_weight() * (sums[2] + sums[3]);
}

void Agent::Impl::gather_groups() {
  const auto n = static_cast<size_t>(units.size());
  pool.parallel_for(samples, [&](int sample, int) {
    for (size_t u = 0; u < n; ++u) {
      const size_t at = static_cast<size_t>(sample) * n + u;
      group_taken[at] = partition->row(sample, static_cast<int64_t>(u))[group_of[at]];
    }
  });
}

void Agent::Impl::forward() {
  const Stopwatch watch(profile.forward_s);
  if (torch_policy) {
    forward_partition();
    torch_policy->evaluate(devices, device_taken);
    return gather_groups();
  }
  const auto k = static_cast<size_t>(groups);
  pool.parallel_for(shards() + partition->chunks(), [&](int item, int) {
    poll_stop();
    if (item >= shards())
      return partition->forward_chunk(item - shards(), parameters.values.data());
    SchedulePasses& pass = passes[item];
    pass.evaluate(parameters.values.data());
    const size_t first = static_cast<size_t>(first_of(item)) * k;
    std::copy(pass.taken.begin(), pass.taken.end(),
              device_taken.begin() + static_cast<std::ptrdiff_t>(first));
  });
  gather_groups();
}

Objective Agent::Impl::set_coefficients(std::span<const double> advantage,
                                        std::span<const uint8_t> weight, double batch_size) {
  const Actions by_unit{units.size(),      group_taken, old_group,
                        group_coefficient, batch_size,  group_credit};
  const Actions by_group{groups,     device_taken, old_device, device_coefficient,
                         batch_size, device_credit};
  if (options.ratio == Ratio::joint)
    return clip_jointly(by_unit, by_group, advantage, weight, options.clip);
  const auto first = options.ratio == Ratio::action
                         ? clip_actions(by_unit, advantage, weight, options.clip)
                         : clip_parts(by_unit, group_of, groups, advantage, weight, options.clip);
  const auto second = clip_actions(by_group, advantage, weight, options.clip);
  const double share = static_cast<double>(units.size()) / (units.size() + groups);
  return {first.value + second.value, first.clipped * share + second.clipped * (1 - share)};
}

/// Gradients of the shards into parts of their own, then their sum in a fixed order.
void Agent::Impl::backward(double entropy_weight) {
  const Stopwatch watch(profile.backward_s);
  if (torch_policy) {
    torch_policy->backward(group_of, group_coefficient, device_coefficient, entropy_weight, 0,
                           gradient);
    return;
  }
  const double rows = static_cast<double>(partition->copies()) * units.size();
  const auto on_units = static_cast<float>(entropy_weight / rows);
  const auto on_groups =
      static_cast<float>(entropy_weight / static_cast<double>(device_taken.size()));
  const int items = shards() + partition->chunks();
  const auto first = static_cast<size_t>(partition->weight_count());
  gradient_parts.resize(static_cast<size_t>(items));
  pool.parallel_for(items, [&](int item, int) {
    auto& part = gradient_parts[item];
    if (item >= shards()) {
      part.assign(first, 0.0f);
      return partition->backward_chunk(item - shards(), parameters.values.data(), group_of,
                                       group_coefficient, on_units, part.data());
    }
    part.assign(gradient.size() - first, 0.0f);
    const auto k = static_cast<size_t>(groups);
    const size_t at = static_cast<size_t>(first_of(item)) * k;
    const size_t count = static_cast<size_t>(first_of(item + 1)) * k - at;
    // The schedule network's weights follow the partition network's.
    passes[item].backward(parameters.values.data(), {device_coefficient.data() + at, count},
                          {on_groups, 0}, part.data() - first);
  });
  sum_parts(first);
}

/// Adds the parts up: chunks of the partition network for the first weights, shards for the rest.
void Agent::Impl::sum_parts(size_t first) {
  const auto sum = [&](size_t begin, size_t end, size_t from, size_t to, size_t shift) {
    for (size_t p = from; p < to; ++p) {
      const float* part = gradient_parts[p].data() - shift;
      if (p == from)
        std::copy(part + begin, part + end, gradient.data() + begin);
      else
        kernels().add(static_cast<int64_t>(end - begin), part + begin, gradient.data() + begin);
    }
  };
  const auto split = static_cast<size_t>(shards());
  const auto blocks = static_cast<int>((gradient.size() - first + kBlock - 1) / kBlock);
  pool.parallel_for(blocks + 1, [&](int block, int) {
    if (block == blocks) return sum(0, first, split, gradient_parts.size(), 0);
    const size_t begin = first + static_cast<size_t>(block) * kBlock;
    sum(begin, std::min(gradient.size(), begin + kBlock), 0, split, first);
  });
}

/// Clips the gradient's norm, takes a step of Adam uphill, packs the weights. Returns the norm.
double Agent::Impl::apply(double rate) {
  const Stopwatch watch(profile.optimise_s);
  const int64_t size = parameters.size();
  if (!options.schedule_learns)
    std::fill(gradient.begin() + partition->weight_count(), gradient.end(), 0.0f);
  const auto blocks = static_cast<int>((size + kBlock - 1) / kBlock);
  std::vector<double> sums(static_cast<size_t>(blocks), 0);
  pool.parallel_for(blocks, [&](int block, int) {
    const int64_t first = block * kBlock, count = std::min(kBlock, size - first);
    sums[block] = kernels().square_sum(count, gradient.data() + first);
  });
  double norm = 0;
  for (const double sum : sums) norm += sum;
  norm = std::sqrt(norm);
  const double shrink = std::min(1.0, options.gradient_norm / (norm + 1e-6));
  ++adam.steps;
  const auto t = static_cast<double>(adam.steps);
  const auto step = static_cast<float>(rate / (1 - std::pow(0.9, t)));
  const auto root = static_cast<float>(std::sqrt(1 - std::pow(0.999, t)));
  pool.parallel_for(blocks, [&](int block, int) {
    const int64_t first = block * kBlock, count = std::min(kBlock, size - first);
    // Adam descends; the objective is to rise.
    kernels().adam(count, parameters.values.data() + first, gradient.data() + first,
                   adam.first.data() + first, adam.second.data() + first,
                   static_cast<float>(-shrink), step, root);
  });
  pack();
  return norm;
}

}  // namespace trinity
