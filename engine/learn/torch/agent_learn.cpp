// Learning of the agent: update() and its gradient steps.
#include <algorithm>
#include <cmath>

#include "base/stop.h"
#include "learn/torch/agent_impl.h"

namespace trinity {

Objective clipped_objective(const torch::Tensor& log_ratio, const torch::Tensor& advantage,
                            const torch::Tensor& weight, double clip, double batch) {
  const auto share = weight.unsqueeze(1) / (batch * static_cast<double>(log_ratio.size(1)));
  const auto ratio = log_ratio.clamp(-20, 20).exp();
  const auto term = torch::min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage);
  const auto outside = (ratio.detach() - 1).abs() > clip;
  return {(share * term).sum(), (share * outside).sum().item<double>()};
}

namespace {

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

torch::Tensor chosen(const torch::Tensor& rows, const torch::Tensor& devices) {
  return rows.gather(2, devices.to(rows.device()).unsqueeze(2)).squeeze(2);
}

double Agent::Impl::learning_rate() const {
  const int64_t beyond = weights.steps - options.decay_after;
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
  const auto all =
      torch::tensor(at::ArrayRef<double>(rewards.data(), rewards.size()), torch::kDouble);
  const auto counted =
      torch::tensor(at::ArrayRef<uint8_t>(weight.data(), weight.size()), torch::kDouble);
  for (int32_t index = 0; index < options.epochs; ++index) {
    epoch((all - baseline) * scale, counted, report);
    if (any && options.baseline_every_epoch) move_baseline(report.mean_reward);
  }
  if (any && !options.baseline_every_epoch) move_baseline(report.mean_reward);
  report.baseline = baseline;
  forget_batch();
  return report;
}

/// A gradient step. advantage, weight [samples of all processes].
void Agent::Impl::epoch(const torch::Tensor& advantage, const torch::Tensor& weight,
                        UpdateReport& report) {
  forward();
  // The objective depends on log-probabilities alone; its derivatives by these go back through the
  // networks, shard by shard.
  const auto by_unit = taken_groups().detach().requires_grad_();
  const auto by_group = taken_devices().requires_grad_();
  const auto made = objective(by_unit, by_group, advantage, weight);
  const auto coefficients = torch::autograd::grad({made.value}, {by_unit, by_group});
  report_objective(made, report);
  backward(coefficients[0], coefficients[1]);
  if (peers.size > 1) {
    const auto host = gradient.cpu();
    peers.sum_floats({host.data_ptr<float>(), static_cast<size_t>(host.numel())});
    gradient = to_device(host);
  }
  report.learning_rate = learning_rate();
  report.gradient_norm = apply(report.learning_rate);
}

/// Objective, entropies and loss of the whole batch.
void Agent::Impl::report_objective(const Objective& objective, UpdateReport& report) {
  const torch::NoGradGuard no_grad;
  double on_devices = 0;
  for (const auto& shard : shards)
    on_devices += entropy(shard.rows).item<double>() * static_cast<double>(shard.count) / samples;
  // Entropies are means over the samples, equal in every process for units.
  double sums[] = {objective.value.item<double>(), objective.clipped,
                   own_share() * entropy(unit_rows).item<double>(), own_share() * on_devices};
  if (peers.size > 1) peers.sum_doubles(sums);
  report.clipped_share = sums[1];
  report.entropy_groups = sums[2];
  report.entropy_devices = sums[3];
  report.loss = -sums[0] - entropy_weight() * (sums[2] + sums[3]);
}

torch::Tensor Agent::Impl::join(torch::Tensor Shard::*field) const {
  std::vector<torch::Tensor> parts;
  for (const auto& shard : shards) parts.push_back(shard.*field);
  return torch::cat(parts);
}

/// Log-probabilities of the sampled groups [S, U].
torch::Tensor Agent::Impl::taken_groups() const {
  return unit_rows.gather(1, drawn_groups.t()).t();
}

/// Log-probabilities of the sampled devices [S, K], without a graph.
torch::Tensor Agent::Impl::taken_devices() const {
  return to_device(chosen(join(&Shard::rows).detach(), join(&Shard::devices)));
}

void Agent::Impl::evaluate(Shard& shard) const {
  if (!shard.encoded) shard.encoded = schedule.encode(to_device(shard.groups));
  shard.rows = schedule.log_probabilities(schedule.logits(*shard.encoded, to_device(shard.devices)),
                                          to_device(shard.prior));
}

/// Log-probabilities by the weights as they are. For units they are known after sampling; for
/// devices they stay where the schedule network does not learn.
void Agent::Impl::forward() {
  const auto last = static_cast<int>(shards.size());
  pool.parallel_for(last + 1, [&](int item, int) {
    poll_stop();
    if (item == last && !unit_rows.defined()) forward_partition();
    if (item < last && options.schedule_learns) evaluate(shards[item]);
  });
}

Objective Agent::Impl::objective(const torch::Tensor& by_unit, const torch::Tensor& by_group,
                                 const torch::Tensor& advantage,
                                 const torch::Tensor& weight) const {
  const auto own = [&](const torch::Tensor& all) {
    return to_device(all.narrow(0, first_sample, samples));
  };
  const double count = std::max(1.0, weight.sum().item<double>());
  const auto log_ratio = [](const torch::Tensor& now, const torch::Tensor& old) {
    return now.to(torch::kDouble) - old.to(torch::kDouble);
  };
  const auto units_ratio = log_ratio(by_unit, old_group);
  const auto groups_ratio = log_ratio(by_group, to_device(old_device));
  const auto clipped = [&](const torch::Tensor& ratio, const std::vector<double>& credit) {
    const auto gain = credit.empty()
                          ? own(advantage).unsqueeze(1)
                          : to_device(torch::tensor(credit, torch::kDouble)).view(ratio.sizes());
    return clipped_objective(ratio, gain, own(weight), options.clip, count);
  };
  if (options.ratio == Ratio::joint)
    return clipped((units_ratio.sum(1) + groups_ratio.sum(1)).unsqueeze(1), {});
  const auto first = clipped(units_ratio, group_credit),
             second = clipped(groups_ratio, device_credit);
  const double share = static_cast<double>(units.size()) / (units.size() + groups);
  return {first.value + second.value, first.clipped * share + second.clipped * (1 - share)};
}

/// The gradient from the objective's derivatives by log-probabilities, and entropies; the shards'
/// in a fixed order.
void Agent::Impl::backward(const torch::Tensor& by_unit, const torch::Tensor& by_group) {
  const double bonus = entropy_weight() * own_share();
  const auto factor = [&](double value) {
    return torch::full({}, value, weights.values.options());
  };
  const auto last = static_cast<int>(shards.size());
  std::vector<torch::Tensor> parts(shards.size() + 1);
  pool.parallel_for(last + 1, [&](int item, int) {
    poll_stop();
    if (item == last) {
      parts[item] = weights.gradient("partition", {taken_groups(), entropy(unit_rows)},
                                     {by_unit, factor(bonus)});
    } else if (options.schedule_learns) {
      const auto& shard = shards[item];
      const double share = static_cast<double>(shard.count) / samples;
      parts[item] =
          weights.gradient("schedule", {chosen(shard.rows, shard.devices), entropy(shard.rows)},
                           {by_group.narrow(0, shard.first, shard.count), factor(bonus * share)});
    }
  });
  gradient = torch::zeros_like(weights.values);
  const int64_t split = parts[last].numel();
  gradient.narrow(0, 0, split).copy_(parts[last]);
  for (int i = 0; i < last && options.schedule_learns; ++i)
    gradient.narrow(0, split, gradient.numel() - split).add_(parts[i]);
}

/// Clips the gradient's norm and takes a step of Adam uphill. Returns the norm.
double Agent::Impl::apply(double rate) {
  const torch::NoGradGuard no_grad;
  const double norm = std::sqrt(gradient.dot(gradient).item<double>());
  weights.ascend(gradient * std::min(1.0, options.gradient_norm / (norm + 1e-6)), rate);
  weights_changed();
  return norm;
}

void Agent::Impl::weights_changed() {
  unit_rows.reset();
  for (auto& shard : shards) shard.encoded.reset();
}

}  // namespace trinity
