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

/// The device of every unit in every placement.
std::vector<std::vector<int32_t>> unit_devices(std::span<const int32_t> given, const UnitGraph& units,
                                               int32_t devices) {
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
      if (device < 0 || device >= devices)
        throw ArgumentError("imitate: placement {}: operator {}: expected a device from 1 to {}", p + 1, o + 1,
                            devices);
      if (of_unit >= 0 && of_unit != device)
        throw ArgumentError("imitate: placement {}: operator {} is not on the device of its colocation unit", p + 1,
                            o + 1);
      of_unit = device;
    }
  }
  return result;
}

/// Work of every unit: its seconds, and a little for those that take none.
std::vector<double> unit_work(const Problem& problem, size_t units) {
  std::vector<double> work(units, 0);
  for (int32_t o = 0; o < problem.operators(); ++o)
    work[problem.graph().op(o).unit] += static_cast<double>(problem.least_cost_ns(o));
  const double all = std::accumulate(work.begin(), work.end(), 0.0);
  for (double& w : work) w = (all > 0 ? 0.9 * w / all : 0) + 0.1 / static_cast<double>(work.size());
  return work;
}

std::vector<double> shares(std::span<const double> given, size_t count) {
  std::vector<double> weight(given.begin(), given.end());
  if (weight.empty()) weight.assign(count, 1);
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  for (double& w : weight) w /= all;
  return weight;
}

}  // namespace

/// Makes an agent imitate placements. Not thread-safe.
class Agent::Impl::Imitation {
 public:
  Imitation(Impl& agent, std::span<const int32_t> given, std::span<const double> weights)
      : agent_(agent),
        device_of_(unit_devices(given, agent.units, agent.problem->devices())),
        work_(unit_work(*agent.problem, static_cast<size_t>(agent.units.size()))),
        weight_(shares(weights, device_of_.size())) {}

  ImitationReport run(const ImitationOptions& how) {
    agent_.forget_batch();
    agent_.mask.reset();
    agent_.forward_partition();
    ImitationReport report;
    infer_groups();
    report.log_likelihood_groups = set_prior(how.smoothing);
    set_device_prior(how.smoothing);
    report.steps = how.steps >= 0 ? how.steps : device_of_.size() > 1 ? kSteps : 0;
    teach(how, report.steps);
    agent_.weights.forget_moments();
    agent_.baseline = agent_.squares = std::numeric_limits<double>::quiet_NaN();
    auto shard = imitated();
    const torch::NoGradGuard no_grad;
    agent_.evaluate(shard);
    const auto taken = chosen(shard.rows, shard.devices).mean(1).to(torch::kDouble).cpu();
    report.log_likelihood_devices =
        (taken * torch::tensor(weight_, torch::kDouble)).sum().item<double>();
    report.agreement = agreement();
    return report;
  }

 private:
  /// Chooses a group for every unit: units of different classes in different groups as far as there
  /// are groups, otherwise where the policy puts them.
  void infer_groups() {
    const auto classes = find_classes(device_of_, work_);
    const auto k = static_cast<size_t>(agent_.groups);
    std::vector<int32_t> likely;
    for (int64_t u = 0; u < agent_.units.size(); ++u) {
      const float* row = agent_.unit_row(u);
      likely.push_back(static_cast<int32_t>(std::max_element(row, row + k) - row));
    }
    const auto class_of = class_of_groups(classes, likely, work_, k);
    target_.resize(work_.size());
    agent_.pool.parallel_for(agent_.units.size(), [&](int unit, int) {
      const auto u = static_cast<size_t>(unit);
      const auto& own = classes.devices[classes.of_unit[u]];
      const float* row = agent_.unit_row(unit);
      double best = -std::numeric_limits<double>::infinity();
      for (size_t g = 0; g < k; ++g) {
        const auto& other = classes.devices[class_of[g]];
        const double score = static_cast<double>(row[g]) - 1e9 * difference(own, other, weight_);
        if (score <= best) continue;
        best = score;
        target_[u] = static_cast<int32_t>(g);
      }
    });
  }

  /// Makes the target the most likely grouping by way of the constant logits. Returns its mean
  /// log-likelihood.
  double set_prior(double smoothing) {
    const auto k = static_cast<size_t>(agent_.groups);
    auto added = torch::zeros_like(agent_.group_rows);
    float* prior = added.data_ptr<float>();
    double sum = 0;
    for (size_t u = 0; u < target_.size(); ++u) {
      const float* row = agent_.unit_row(static_cast<int64_t>(u));
      for (size_t g = 0; g < k; ++g) {
        const double now = std::max(static_cast<double>(row[g]), -80.0);
        double wanted = smoothing * std::exp(now);
        if (static_cast<int32_t>(g) == target_[u]) wanted += 1 - smoothing;
        const double logarithm = std::max(-80.0, std::log(wanted));
        prior[u * k + g] = static_cast<float>(logarithm - static_cast<double>(row[g]));
        if (static_cast<int32_t>(g) == target_[u]) sum += logarithm;
      }
    }
    added = agent_.to_device(added);
    auto& grouping = agent_.partition.prior;
    grouping = grouping.defined() ? grouping + added : added;
    agent_.forward_partition();
    return sum / static_cast<double>(target_.size());
  }

  /// The device of most of the work of every group.
  void devices_of_groups(std::span<const int32_t> grouping, const std::vector<int32_t>& device_of, int64_t* out) const {
    const auto d = static_cast<size_t>(agent_.problem->devices());
    std::vector<double> sum(static_cast<size_t>(agent_.groups) * d, 0);
    for (size_t u = 0; u < grouping.size(); ++u)
      sum[static_cast<size_t>(grouping[u]) * d + static_cast<size_t>(device_of[u])] += work_[u];
    int64_t last = 0;  // empty groups stay on the device before them
    for (int64_t g = 0; g < agent_.groups; ++g) {
      const double* row = sum.data() + static_cast<size_t>(g) * d;
      const auto best = std::max_element(row, row + d);
      if (*best > 0) last = best - row;
      out[g] = last;
    }
  }

  /// Fills a row of a shard with the target grouping, or for streams above 0 one sampled around it, and
  /// the devices that its groups are to have.
  void fill_row(Shard& shard, int64_t row, uint64_t stream_index, const std::vector<int32_t>& device_of) const {
    std::vector<int32_t> grouping = target_;
    if (stream_index > 0) {
      RandomStream random(agent_.options.seed, "imitate", stream_index);
      for (size_t u = 0; u < grouping.size(); ++u)
        grouping[u] = agent_.draw_group(static_cast<int64_t>(u), random);
    }
    const auto labels = agent_.order(grouping);
    agent_.embed(grouping, labels, shard, row);
    devices_of_groups(grouping, device_of, shard.devices.data_ptr<int64_t>() + row * agent_.groups);
  }

  /// The target grouping with the devices of every placement.
  Shard imitated() const {
    Shard shard(agent_, 0, static_cast<int64_t>(device_of_.size()));
    for (int64_t p = 0; p < shard.count; ++p) fill_row(shard, p, 0, device_of_[p]);
    return shard;
  }

  /// Makes every group's devices as likely as their weight among the placements, by way of the
  /// constant logits: what the network itself says on the target grouping is made up for.
  void set_device_prior(double smoothing) {
    const torch::NoGradGuard no_grad;
    const auto k = static_cast<size_t>(agent_.groups), d = static_cast<size_t>(agent_.problem->devices());
    agent_.device_prior.clear();
    if (agent_.schedule_shape.stays) agent_.weights["schedule.stay"].zero_();  // the logits say it better
    auto ordered = target_;
    const auto labels = agent_.order(ordered);
    const auto shard = imitated();
    const auto logits =
        agent_.schedule.logits(agent_.schedule.encode(agent_.to_device(shard.groups)), agent_.to_device(shard.devices))
            .cpu()
            .contiguous();
    std::vector<double> share(k * d, smoothing / static_cast<double>(d)), own(k * d, 0);
    for (size_t p = 0; p < device_of_.size(); ++p) {
      const float* row = logits.data_ptr<float>() + p * k * d;
      const int64_t* chosen = shard.devices.data_ptr<int64_t>() + p * k;
      for (size_t i = 0; i < k * d; ++i) own[i] += weight_[p] * static_cast<double>(row[i]);
      for (size_t t = 0; t < k; ++t)
        share[t * d + static_cast<size_t>(chosen[t])] += (1 - smoothing) * weight_[p];
    }
    agent_.device_prior.assign(k * d, 0.0f);
    for (size_t t = 0; t < k; ++t) {
      double mean = 0;
      for (size_t i = 0; i < d; ++i)
        mean += std::log(share[t * d + i] + 1e-9) / static_cast<double>(d);
      for (size_t i = 0; i < d; ++i) {
        const double wanted = std::log(share[t * d + i] + 1e-9) - mean;
        const double reach = std::clamp(wanted / agent_.options.tanh_constant, -0.98, 0.98);
        agent_.device_prior[static_cast<size_t>(labels[t]) * d + i] =
            static_cast<float>(agent_.options.temperature * std::atanh(reach) - own[t * d + i]);
      }
    }
  }

  /// Trains the schedule network, with rows of all placements alternately.
  void teach(const ImitationOptions& how, int32_t steps) {
    if (steps == 0) return;
    const size_t count = device_of_.size(), rows = std::max(kRows, count);
    Shard shard(agent_, 0, static_cast<int64_t>(rows));
    std::vector<float> share_of;
    for (size_t r = 0; r < rows; ++r) {
      const size_t p = r % count;
      fill_row(shard, static_cast<int64_t>(r), r < count ? 0 : r, device_of_[p]);
      share_of.push_back(static_cast<float>(weight_[p] * static_cast<double>(count)));
    }
    const auto share = agent_.to_device(torch::tensor(share_of)).unsqueeze(1);
    agent_.weights.forget_moments();
    for (int32_t step = 0; step < steps; ++step) {
      poll_stop();
      agent_.evaluate(shard);
      const auto value = (1 - how.smoothing) * (share * chosen(shard.rows, shard.devices)).mean() +
                         how.smoothing * shard.rows.mean();
      agent_.gradient = torch::zeros_like(agent_.weights.values);
      const auto made = agent_.weights.gradient("schedule", {value}, {torch::ones_like(value)});
      agent_.gradient.narrow(0, agent_.gradient.numel() - made.numel(), made.numel()).copy_(made);
      agent_.apply(how.learning_rate);
      shard.encoded.reset();
    }
  }

  /// Fraction of the work that greedy() places as the first placement.
  double agreement() const {
    const auto placement = agent_.greedy();
    const auto& unit_of = agent_.deciding;
    double same = 0, all = 0;
    std::vector<bool> seen(work_.size(), false);
    for (size_t o = 0; o < unit_of.size(); ++o) {
      const auto u = static_cast<size_t>(unit_of[o]);
      if (seen[u]) continue;
      seen[u] = true;
      all += work_[u];
      if (placement[o] == device_of_[0][u]) same += work_[u];
    }
    return same / all;
  }

  Impl& agent_;
  std::vector<std::vector<int32_t>> device_of_;  // [placement][unit]
  std::vector<double> work_;                     // [unit]
  std::vector<double> weight_;                   // [placement], of sum 1
  std::vector<int32_t> target_;                  // [unit]: its group
};

ImitationReport Agent::imitate(std::span<const int32_t> placements, std::span<const double> weights,
                               const ImitationOptions& how) {
  const auto operators = static_cast<size_t>(impl_->problem->operators());
  if (!weights.empty() && weights.size() * operators != placements.size())
    throw ArgumentError("imitate: expected one weight per placement, got {} for {}", weights.size(),
                        placements.size() / std::max<size_t>(1, operators));
  for (const double weight : weights)
    if (!(weight > 0) || !std::isfinite(weight))
      throw ArgumentError("imitate: a weight is {}, expected a positive number", weight);
  return Impl::Imitation(*impl_, placements, weights).run(how);
}

}  // namespace trinity
