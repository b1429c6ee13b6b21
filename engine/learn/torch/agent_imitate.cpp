// Warm starts: a policy that samples given placements, or nearly.
//
// Grouping and devices go into constant logits of the two networks (their priors), which is exact
// for one placement and costs nothing. For several placements these logits hold the fraction of
// each device; maximum likelihood then teaches the schedule network how devices are combined, on
// groupings sampled around the target.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/stop.h"
#include "learn/torch/agent_impl.h"

namespace trinity {
namespace {

/// Samples of one gradient step, if there are not more placements.
constexpr size_t kRows = 8;
constexpr size_t kMostPlacements = 64;

/// Gradient steps for several placements.
constexpr int32_t kSteps = 40;

/// Units that have the same devices in all placements.
struct Classes {
  std::vector<int32_t> of_unit;
  std::vector<std::vector<int32_t>> devices;  ///< of every class, one a placement
  std::vector<double> work;
};

Classes find_classes(const std::vector<std::vector<int32_t>>& device_of,
                     const std::vector<double>& work) {
  Classes classes;
  std::map<std::vector<int32_t>, int32_t> known;
  for (size_t u = 0; u < work.size(); ++u) {
    std::vector<int32_t> devices;
    for (const auto& row : device_of) devices.push_back(row[u]);
    const auto [at, fresh] = known.emplace(devices, static_cast<int32_t>(known.size()));
    if (fresh) {
      classes.devices.push_back(devices);
      classes.work.push_back(0);
    }
    classes.of_unit.push_back(at->second);
    classes.work[at->second] += work[u];
  }
  return classes;
}

/// The weighted share of placements in which two classes lie on different devices.
double difference(const std::vector<int32_t>& a, const std::vector<int32_t>& b,
                  const std::vector<double>& weights) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] == b[i] ? 0 : weights[i];
  return sum;
}

/// A class for every group. Walking along the groups, each goes to the class that the walk so far
/// owes most: classes get groups where their units are, in proportion to their work. Every class
/// gets one, the heaviest first, as long as there are groups for all.
std::vector<int32_t> class_of_groups(const Classes& classes, const std::vector<int32_t>& group_of,
                                     const std::vector<double>& work, size_t groups) {
  const size_t count = classes.devices.size();
  std::vector<double> in_group(groups * count, 0), owed(count, 0);
  for (size_t u = 0; u < work.size(); ++u)
    in_group[static_cast<size_t>(group_of[u]) * count + static_cast<size_t>(classes.of_unit[u])] +=
        work[u];
  std::vector<int32_t> result(groups, 0), uses(count, 0);
  for (size_t g = 0; g < groups; ++g) {
    double all = 0;
    for (size_t c = 0; c < count; ++c) {
      owed[c] += in_group[g * count + c];
      all += in_group[g * count + c];
    }
    const auto best =
        static_cast<size_t>(std::max_element(owed.begin(), owed.end()) - owed.begin());
    owed[best] -= all;
    result[g] = static_cast<int32_t>(best);
    ++uses[best];
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return classes.work[a] > classes.work[b]; });
  for (const size_t c : order) {
    if (uses[c] > 0) continue;
    // From a class that has several, where this one has most of its work.
    double most = -1;
    size_t at = groups;
    for (size_t g = 0; g < groups; ++g) {
      if (uses[result[g]] < 2 || in_group[g * count + c] <= most) continue;
      most = in_group[g * count + c];
      at = g;
    }
    if (at == groups) break;
    --uses[result[at]];
    result[at] = static_cast<int32_t>(c);
    ++uses[c];
  }
  return result;
}

}  // namespace

/// The device of every unit in every placement.
std::vector<std::vector<int32_t>> Agent::Impl::unit_devices(std::span<const int32_t> given) const {
  const auto& unit_of = units.unit_of;
  const size_t n = unit_of.size(), count = n > 0 ? given.size() / n : 0;
  if (count == 0 || given.size() != count * n || count > kMostPlacements)
    throw ArgumentError("imitate: expected 1 to {} placements of {} operators", kMostPlacements, n);
  std::vector<std::vector<int32_t>> result(
      count, std::vector<int32_t>(static_cast<size_t>(units.size()), -1));
  for (size_t p = 0; p < count; ++p) {
    for (size_t o = 0; o < n; ++o) {
      const int32_t device = given[p * n + o];
      int32_t& of_unit = result[p][unit_of[o]];
      if (device < 0 || device >= problem->devices())
        throw ArgumentError("imitate: placement {}: operator {}: expected a device from 1 to {}", p + 1, o + 1,
                            problem->devices());
      if (of_unit >= 0 && of_unit != device)
        throw ArgumentError("imitate: placement {}: operator {} is not on the device of its colocation unit", p + 1,
                            o + 1);
      of_unit = device;
    }
  }
  return result;
}

/// Work of every unit: its seconds, and a little for those that take none.
std::vector<double> Agent::Impl::unit_work() const {
  std::vector<double> work(static_cast<size_t>(units.size()), 0);
  for (int32_t o = 0; o < problem->operators(); ++o)
    work[problem->graph().op(o).unit] += static_cast<double>(problem->least_cost_ns(o));
  const double all = std::accumulate(work.begin(), work.end(), 0.0);
  for (double& w : work) w = (all > 0 ? 0.9 * w / all : 0) + 0.1 / static_cast<double>(work.size());
  return work;
}

/// Chooses a group for every unit: units of different classes in different groups as far as there
/// are groups, otherwise where the policy puts them.
std::vector<int32_t> Agent::Impl::infer_groups(const std::vector<std::vector<int32_t>>& device_of,
                                               const std::vector<double>& weight) {
  const auto work = unit_work();
  const auto classes = find_classes(device_of, work);
  const auto k = static_cast<size_t>(groups);
  std::vector<int32_t> likely;
  for (int64_t u = 0; u < units.size(); ++u) {
    const float* row = unit_row(u);
    likely.push_back(static_cast<int32_t>(std::max_element(row, row + k) - row));
  }
  const auto class_of = class_of_groups(classes, likely, work, k);
  std::vector<int32_t> target(work.size());
  pool.parallel_for(units.size(), [&](int unit, int) {
    const auto u = static_cast<size_t>(unit);
    const auto& own = classes.devices[classes.of_unit[u]];
    const float* row = unit_row(unit);
    double best = -std::numeric_limits<double>::infinity();
    for (size_t g = 0; g < k; ++g) {
      const auto& other = classes.devices[class_of[g]];
      const double score = static_cast<double>(row[g]) - 1e9 * difference(own, other, weight);
      if (score <= best) continue;
      best = score;
      target[u] = static_cast<int32_t>(g);
    }
  });
  return target;
}

/// Makes the target the most likely grouping by way of the constant logits. Returns its mean
/// log-likelihood.
double Agent::Impl::set_prior(const std::vector<int32_t>& target, double smoothing) {
  const auto k = static_cast<size_t>(groups);
  auto added = torch::zeros_like(group_rows);
  float* prior = added.data_ptr<float>();
  double sum = 0;
  for (size_t u = 0; u < target.size(); ++u) {
    const float* row = unit_row(static_cast<int64_t>(u));
    for (size_t g = 0; g < k; ++g) {
      const double now = std::max(static_cast<double>(row[g]), -80.0);
      double wanted = smoothing * std::exp(now);
      if (static_cast<int32_t>(g) == target[u]) wanted += 1 - smoothing;
      const double logarithm = std::max(-80.0, std::log(wanted));
      prior[u * k + g] = static_cast<float>(logarithm - static_cast<double>(row[g]));
      if (static_cast<int32_t>(g) == target[u]) sum += logarithm;
    }
  }
  added = to_device(added);
  partition.prior = partition.prior.defined() ? partition.prior + added : added;
  forward_partition();
  return sum / static_cast<double>(target.size());
}

/// The device of most of the work of every group.
void Agent::Impl::devices_of_groups(std::span<const int32_t> grouping,
                                    const std::vector<int32_t>& device_of, int64_t* out) const {
  const auto d = static_cast<size_t>(problem->devices());
  const auto work = unit_work();
  std::vector<double> sum(static_cast<size_t>(groups) * d, 0);
  for (size_t u = 0; u < grouping.size(); ++u)
    sum[static_cast<size_t>(grouping[u]) * d + static_cast<size_t>(device_of[u])] += work[u];
  int64_t last = 0;  // empty groups stay on the device before them
  for (int64_t g = 0; g < groups; ++g) {
    const double* row = sum.data() + static_cast<size_t>(g) * d;
    const auto best = std::max_element(row, row + d);
    if (*best > 0) last = best - row;
    out[g] = last;
  }
}

/// Fills a row of a shard with the target grouping, or for streams above 0 one sampled around it, and
/// the devices that its groups are to have.
void Agent::Impl::imitation_row(Shard& shard, int64_t row, uint64_t stream_index,
                                const std::vector<int32_t>& target,
                                const std::vector<int32_t>& device_of) const {
  std::vector<int32_t> grouping = target;
  if (stream_index > 0) {
    RandomStream random(options.seed, "imitate", stream_index);
    for (size_t u = 0; u < grouping.size(); ++u)
      grouping[u] = draw_group(static_cast<int64_t>(u), random);
  }
  const auto labels = order(grouping);
  embed(grouping, labels, shard, row);
  devices_of_groups(grouping, device_of, shard.devices.data_ptr<int64_t>() + row * groups);
}

/// The target grouping with the devices of every placement.
Agent::Impl::Shard Agent::Impl::imitated(const std::vector<int32_t>& target,
                                         const std::vector<std::vector<int32_t>>& device_of) const {
  Shard shard(*this, 0, static_cast<int64_t>(device_of.size()));
  for (int64_t p = 0; p < shard.count; ++p) imitation_row(shard, p, 0, target, device_of[p]);
  return shard;
}

/// Makes every group's devices as likely as their weight among the placements, by way of the
/// constant logits: what the network itself says on the target grouping is made up for.
void Agent::Impl::set_device_prior(const std::vector<int32_t>& target,
                                   const std::vector<std::vector<int32_t>>& device_of,
                                   const std::vector<double>& weight, double smoothing) {
  const torch::NoGradGuard no_grad;
  const auto k = static_cast<size_t>(groups), d = static_cast<size_t>(problem->devices());
  device_prior.clear();
  if (schedule_shape.stays) weights["schedule.stay"].zero_();  // the logits say it better
  auto ordered = target;
  const auto labels = order(ordered);
  const auto shard = imitated(target, device_of);
  const auto logits =
      schedule.logits(schedule.encode(to_device(shard.groups)), to_device(shard.devices))
          .cpu()
          .contiguous();
  std::vector<double> share(k * d, smoothing / static_cast<double>(d)), own(k * d, 0);
  for (size_t p = 0; p < device_of.size(); ++p) {
    const float* row = logits.data_ptr<float>() + p * k * d;
    const int64_t* chosen = shard.devices.data_ptr<int64_t>() + p * k;
    for (size_t i = 0; i < k * d; ++i) own[i] += weight[p] * static_cast<double>(row[i]);
    for (size_t t = 0; t < k; ++t)
      share[t * d + static_cast<size_t>(chosen[t])] += (1 - smoothing) * weight[p];
  }
  device_prior.assign(k * d, 0.0f);
  for (size_t t = 0; t < k; ++t) {
    double mean = 0;
    for (size_t i = 0; i < d; ++i)
      mean += std::log(share[t * d + i] + 1e-9) / static_cast<double>(d);
    for (size_t i = 0; i < d; ++i) {
      const double wanted = std::log(share[t * d + i] + 1e-9) - mean;
      const double reach = std::clamp(wanted / options.tanh_constant, -0.98, 0.98);
      device_prior[static_cast<size_t>(labels[t]) * d + i] =
          static_cast<float>(options.temperature * std::atanh(reach) - own[t * d + i]);
    }
  }
}

ImitationReport Agent::Impl::imitate(std::span<const int32_t> given,
                                     std::span<const double> weights_given,
                                     const ImitationOptions& how) {
  const auto device_of = unit_devices(given);
  std::vector<double> weight(weights_given.begin(), weights_given.end());
  if (weight.empty()) weight.assign(device_of.size(), 1);
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  for (double& w : weight) w /= all;
  forget_batch();
  mask.reset();
  forward_partition();
  ImitationReport report;
  const auto target = infer_groups(device_of, weight);
  report.log_likelihood_groups = set_prior(target, how.smoothing);
  set_device_prior(target, device_of, weight, how.smoothing);
  report.steps = how.steps >= 0 ? how.steps : device_of.size() > 1 ? kSteps : 0;
  teach(target, device_of, weight, how, report.steps);
  weights.forget_moments();
  baseline = squares = std::numeric_limits<double>::quiet_NaN();
  auto shard = imitated(target, device_of);
  const torch::NoGradGuard no_grad;
  evaluate(shard);
  const auto taken = chosen(shard.rows, shard.devices).mean(1).to(torch::kDouble).cpu();
  report.log_likelihood_devices =
      (taken * torch::tensor(weight, torch::kDouble)).sum().item<double>();
  report.agreement = agreement(device_of[0]);
  return report;
}

/// Trains the schedule network, with rows of all placements alternately.
void Agent::Impl::teach(const std::vector<int32_t>& target,
                        const std::vector<std::vector<int32_t>>& device_of,
                        const std::vector<double>& weight, const ImitationOptions& how,
                        int32_t steps) {
  if (steps == 0) return;
  const size_t count = device_of.size(), rows = std::max(kRows, count);
  Shard shard(*this, 0, static_cast<int64_t>(rows));
  std::vector<float> shares;
  for (size_t r = 0; r < rows; ++r) {
    const size_t p = r % count;
    imitation_row(shard, static_cast<int64_t>(r), r < count ? 0 : r, target, device_of[p]);
    shares.push_back(static_cast<float>(weight[p] * static_cast<double>(count)));
  }
  const auto share = to_device(torch::tensor(shares)).unsqueeze(1);
  weights.forget_moments();
  for (int32_t step = 0; step < steps; ++step) {
    poll_stop();
    evaluate(shard);
    const auto value = (1 - how.smoothing) * (share * chosen(shard.rows, shard.devices)).mean() +
                       how.smoothing * shard.rows.mean();
    gradient = torch::zeros_like(weights.values);
    const auto made = weights.gradient("schedule", {value}, {torch::ones_like(value)});
    gradient.narrow(0, gradient.numel() - made.numel(), made.numel()).copy_(made);
    apply(how.learning_rate);
    shard.encoded.reset();
  }
}

/// Fraction of the work that greedy() places as `device_of` says.
double Agent::Impl::agreement(const std::vector<int32_t>& device_of) {
  const auto placement = greedy();
  const auto& unit_of = deciding;
  const auto work = unit_work();
  double same = 0, all = 0;
  std::vector<bool> seen(work.size(), false);
  for (size_t o = 0; o < unit_of.size(); ++o) {
    const auto u = static_cast<size_t>(unit_of[o]);
    if (seen[u]) continue;
    seen[u] = true;
    all += work[u];
    if (placement[o] == device_of[u]) same += work[u];
  }
  return same / all;
}

ImitationReport Agent::imitate(std::span<const int32_t> placements, std::span<const double> weights,
                               const ImitationOptions& how) {
  const auto operators = static_cast<size_t>(impl_->problem->operators());
  if (!weights.empty() && weights.size() * operators != placements.size())
    throw ArgumentError("imitate: expected one weight per placement, got {} for {}", weights.size(),
                        placements.size() / std::max<size_t>(1, operators));
  for (const double weight : weights)
    if (!(weight > 0) || !std::isfinite(weight))
      throw ArgumentError("imitate: a weight is {}, expected a positive number", weight);
  return impl_->imitate(placements, weights, how);
}

}  // namespace trinity
