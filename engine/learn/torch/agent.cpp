#include "learn/torch/agent.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/stop.h"
#include "learn/torch/agent_impl.h"
#include "libtorch/setup.h"

namespace trinity {
namespace {

/// Samples that one task of the pool evaluates at most. Fixed, so that sums of gradients never
/// depend on the number of threads.
constexpr int32_t kShard = 10;

/// Samples an index from probabilities.
int32_t draw(const float* probability, int64_t count, RandomStream& random) {
  const double at = random.uniform();
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (probability[i] <= 0) continue;
    last = i;
    if ((sum += static_cast<double>(probability[i])) > at) break;
  }
  return static_cast<int32_t>(last);
}

/// Samples an index from log-probabilities, to which uniform noise of this amplitude is added.
int32_t draw_noisy(const float* log_probability, int64_t count, RandomStream& random,
                   double noise) {
  thread_local std::vector<double> cumulative;
  cumulative.clear();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double shift = noise > 0 ? noise * (2 * random.uniform() - 1) : 0;
    cumulative.push_back(sum += std::exp(static_cast<double>(log_probability[i]) + shift));
  }
  const double at = random.uniform() * sum;
  const auto index = std::upper_bound(cumulative.begin(), cumulative.end(), at);
  return static_cast<int32_t>(std::min<int64_t>(index - cumulative.begin(), count - 1));
}

/// int64 as a list of int32.
std::vector<int32_t> integers(const torch::Tensor& tensor) {
  const auto flat = tensor.to(torch::kInt).contiguous();
  return {flat.data_ptr<int32_t>(), flat.data_ptr<int32_t>() + flat.numel()};
}

int32_t arg_max(const float* values, int64_t count) {
  return static_cast<int32_t>(std::max_element(values, values + count) - values);
}

int32_t group_count(const Problem& problem, const UnitGraph& units, int32_t wanted) {
  const int64_t count = wanted > 0 ? wanted : std::min<int64_t>(256, 20 * problem.devices());
  return static_cast<int32_t>(std::min<int64_t>(count, units.size()));
}

/// The unit whose device every operator takes: its own, or the first one's of the units that have
/// to share a device with it.
std::vector<int32_t> deciding_units(const Graph& graph, const UnitGraph& units) {
  std::vector<int32_t> deciding;
  for (const int32_t unit : graph.units()) deciding.push_back(units.unit_of[graph.unit(unit)[0]]);
  return deciding;
}

/// The logit of the previous device with which an untrained network leaves it at this probability.
double staying_logit(const AgentOptions& options, double switch_probability, int32_t devices) {
  const double others = std::max(1.0, static_cast<double>(devices - 1));
  const double odds = std::log((1 - switch_probability) * others / switch_probability);
  return options.temperature * std::atanh(std::clamp(odds / options.tanh_constant, -0.999, 0.999));
}

/// Constant logits [groups, devices] by which group g goes to device g mod devices.
std::vector<float> dealt_logits(const AgentOptions& options, int32_t groups, int32_t devices) {
  const auto k = static_cast<size_t>(groups), d = static_cast<size_t>(devices);
  const auto logit = static_cast<float>(staying_logit(options, 1 - options.dealt, devices));
  std::vector<float> logits(k * d, 0.0f);
  for (size_t g = 0; g < k; ++g) logits[g * d + g % d] = logit;
  return logits;
}

/// Logits [units, groups] that an untrained network starts from: -contiguity * (K * position -
/// (g + 1/2))^2 for group g and a unit at `position` in (0, 1). Neighbouring units share groups.
torch::Tensor contiguous_prior(const std::vector<double>& position, int64_t groups,
                               double contiguity) {
  const auto at = torch::tensor(position, torch::kDouble).unsqueeze(1) * groups;
  const auto middle = torch::arange(groups, torch::kDouble) + 0.5;
  return ((at - middle).square() * -contiguity).to(torch::kFloat);
}

/// Names, shapes and first values of all weights. Throws LimitError when samples, groups and width
/// multiply to more than a machine has.
Parameters first_weights(const AgentOptions& options, int32_t samples,
                         const PartitionShape& partition, const ScheduleShape& schedule) {
  Parameters parameters;
  add_partition_weights(partition, parameters);
  add_schedule_weights(schedule, parameters);
  constexpr double kMostBytes = 24e9;
  const auto k = static_cast<double>(schedule.groups), width = static_cast<double>(schedule.width);
  const double rows = static_cast<double>(samples) * k;
  // A row keeps some 40 vectors of the hidden width, a weight a dozen copies of itself.
  const double bytes = 4 * (rows * (2 * k + 40.0 * options.hidden + 2 * width) +
                            12 * static_cast<double>(parameters.size()));
  if (bytes > kMostBytes)
    throw LimitError("{} samples of {} groups at option 'hidden' = {} take about {:.0f} GB, the limit is {:.0f}",
                     samples, schedule.groups, options.hidden, bytes / 1e9, kMostBytes / 1e9);
  parameters.initialise("partition", options.seed);
  parameters.initialise("schedule", options.seed);
  if (schedule.stays)
    *parameters.data("schedule.stay") = static_cast<float>(
        staying_logit(options, options.switch_probability, static_cast<int32_t>(schedule.devices)));
  return parameters;
}

/// The first of the batch that process `rank` samples.
int32_t share_begin(int32_t samples, int32_t rank, int32_t size) {
  return static_cast<int32_t>(int64_t{samples} * rank / size);
}

}  // namespace

torch::Tensor entropy(const torch::Tensor& rows) { return -(rows.exp() * rows).sum(-1).mean(); }

Agent::Impl::Impl(std::shared_ptr<const Problem> problem_in, const AgentOptions& options_in,
                  ThreadPool& pool_in, AgentPeers peers_in)
    : problem(std::move(problem_in)),
      options(options_in),
      peers(std::move(peers_in)),
      first_sample(share_begin(options.samples, peers.rank, peers.size)),
      samples(share_begin(options.samples, peers.rank + 1, peers.size) - first_sample),
      pool(pool_in),
      units(options.each_operator ? make_operator_graph(problem->graph())
                                  : make_unit_graph(problem->graph())),
      deciding(deciding_units(problem->graph(), units)),
      features(unit_features(*problem, units, options.features, options.seed)),
      groups(group_count(*problem, units, options.groups)),
      embedder(*problem, units, features, groups, options.features),
      partition_shape{units.size(), options.features.type_index ? 0 : features.type_count,
                      features.width, groups, options.linear_partition},
      schedule_shape{groups,
                     embedder.width(),
                     problem->devices(),
                     options.hidden,
                     options.temperature,
                     options.tanh_constant,
                     options.switch_probability > 0,
                     options.layers},
      layout(first_weights(options, samples, partition_shape, schedule_shape)),
      weights(layout, options.device),
      partition(partition_shape, features, weights),
      schedule(schedule_shape, weights) {
  use_one_torch_thread();
  pool.on_each(use_one_torch_thread);
  if (options.contiguity > 0)
    partition.prior =
        to_device(contiguous_prior(work_position(*problem, units), groups, options.contiguity));
  if (options.dealt > 0) device_prior = dealt_logits(options, groups, problem->devices());
  const int32_t count = options.device == "cpu" ? (samples + kShard - 1) / kShard : 1;
  for (int32_t i = 0; i < count; ++i) {
    const int64_t first = int64_t{samples} * i / count;
    shards.emplace_back(*this, first, int64_t{samples} * (i + 1) / count - first);
  }
  const size_t by_unit = static_cast<size_t>(samples) * static_cast<size_t>(units.size());
  group_of.resize(by_unit);
  ordered_group.resize(by_unit);
}

Agent::Impl::Shard::Shard(const Impl& agent, int64_t first_sample, int64_t samples)
    : first(first_sample),
      count(samples),
      groups(torch::empty({agent.groups, samples, agent.schedule_shape.width})),
      prior(torch::zeros({samples, agent.groups, agent.schedule_shape.devices})),
      devices(torch::zeros({samples, agent.groups}, torch::kLong)) {}

/// Samples dropout's mask of a batch.
void Agent::Impl::draw_mask() {
  if (options.dropout <= 0) return;
  RandomStream random(options.seed, "dropout", batch);
  std::vector<float> scale(static_cast<size_t>(units.size() * PartitionShape::kFirst));
  for (float& x : scale)
    x = random.uniform() < options.dropout ? 0.0f : static_cast<float>(1 / (1 - options.dropout));
  mask = to_device(torch::tensor(scale).view({units.size(), PartitionShape::kFirst}));
}

void Agent::Impl::forward_partition() {
  unit_rows = partition.forward(mask);
  group_rows = unit_rows.detach().cpu().contiguous();
  group_chances = group_rows.exp();
}

int32_t Agent::Impl::draw_group(int64_t unit, RandomStream& random) const {
  const double amplitude = noise();
  if (amplitude > 0) return draw_noisy(unit_row(unit), groups, random, amplitude);
  return draw(group_chances.data_ptr<float>() + unit * groups, groups, random);
}

void Agent::Impl::draw_groups(Shard& shard, int64_t row) {
  RandomStream random(options.seed, "groups", stream(shard.first + row));
  const auto n = static_cast<size_t>(units.size());
  const auto first = static_cast<size_t>(shard.first + row) * n;
  for (size_t u = 0; u < n; ++u)
    group_of[first + u] = ordered_group[first + u] = draw_group(static_cast<int64_t>(u), random);
  const std::span<int32_t> grouping(ordered_group.data() + first, n);
  const auto labels = order(grouping);
  embed(grouping, labels, shard, row);
}

/// Renumbers groups by the mean place of their members, empty ones last. Returns what number each
/// had before.
std::vector<int32_t> Agent::Impl::order(std::span<int32_t> group) const {
  const auto k = static_cast<size_t>(groups);
  std::vector<int32_t> by_place(k), rank(k);
  std::iota(by_place.begin(), by_place.end(), 0);
  if (!options.order_groups) return by_place;
  std::vector<double> place(k, 0), members(k, 0);
  for (size_t u = 0; u < group.size(); ++u) {
    place[group[u]] += units.first_operator[u];
    members[group[u]] += 1;
  }
  for (size_t g = 0; g < k; ++g)
    place[g] = members[g] > 0 ? place[g] / members[g] : std::numeric_limits<double>::infinity();
  std::stable_sort(by_place.begin(), by_place.end(),
                   [&](int32_t a, int32_t b) { return place[a] < place[b]; });
  for (size_t i = 0; i < k; ++i) rank[by_place[i]] = static_cast<int32_t>(i);
  for (int32_t& g : group) g = rank[g];
  return by_place;
}

/// Writes the schedule network's input of a grouping; `labels` are its groups as sampled.
void Agent::Impl::embed(std::span<const int32_t> grouping, std::span<const int32_t> labels,
                        Shard& shard, int64_t row) const {
  const int64_t width = schedule_shape.width, d = schedule_shape.devices;
  embedder.embed(grouping, shard.groups.data_ptr<float>() + row * width,
                 shard.groups.size(1) * width);
  float* to = shard.prior.data_ptr<float>() + row * groups * d;
  if (device_prior.empty()) std::fill_n(to, groups * d, 0.0f);
  for (size_t t = 0; t < labels.size() && !device_prior.empty(); ++t)
    std::copy_n(device_prior.data() + labels[t] * d, d, to + static_cast<int64_t>(t) * d);
}

/// Encodes a shard's groups, with autograd's graph for the first gradient step, and samples devices.
void Agent::Impl::draw_devices(Shard& shard, const ScheduleNet::Choose& choose) const {
  shard.encoded = schedule.encode(to_device(shard.groups));
  std::tie(shard.devices, shard.rows) =
      schedule.sample(*shard.encoded, to_device(shard.prior), choose);
}

void Agent::Impl::sample() {
  ++batch;
  sampled = false;
  draw_mask();
  forward_partition();
  pool.parallel_for(static_cast<int>(shards.size()), [&](int item, int) {
    poll_stop();
    Shard& shard = shards[item];
    std::vector<RandomStream> streams;
    for (int64_t row = 0; row < shard.count; ++row) {
      draw_groups(shard, row);
      streams.emplace_back(options.seed, "devices", stream(shard.first + row));
    }
    draw_devices(shard, [&](int64_t row, int64_t, const float* logs) {
      return draw_noisy(logs, problem->devices(), streams[row], noise());
    });
  });
  drawn_groups = to_device(torch::tensor(group_of, torch::kLong).view({samples, units.size()}));
  old_group = taken_groups().detach();
  old_device = taken_devices();
  devices = integers(join(&Shard::devices));
  expand(ordered_group, devices, placements);
  sampled = true;
}

/// Placements of operators from groups of units and devices of groups.
void Agent::Impl::expand(std::span<const int32_t> groups_of, std::span<const int32_t> devices_of,
                         std::vector<int32_t>& out) const {
  const auto n = static_cast<size_t>(units.size()), k = static_cast<size_t>(groups);
  const size_t count = groups_of.size() / n;
  out.resize(count * deciding.size());
  pool.parallel_for(static_cast<int>(count), [&](int item, int) {
    const auto c = static_cast<size_t>(item);
    int32_t* to = out.data() + c * deciding.size();
    for (const int32_t unit : deciding)
      *to++ = devices_of[c * k + static_cast<size_t>(groups_of[c * n + static_cast<size_t>(unit)])];
  });
}

std::vector<int32_t> Agent::Impl::greedy() {
  forget_batch();
  mask.reset();
  forward_partition();
  std::vector<int32_t> chosen, placement;
  for (int64_t u = 0; u < units.size(); ++u) chosen.push_back(arg_max(unit_row(u), groups));
  const auto labels = order(chosen);
  Shard shard(*this, 0, 1);
  embed(chosen, labels, shard, 0);
  draw_devices(shard, [&](int64_t, int64_t, const float* logs) {
    return arg_max(logs, problem->devices());
  });
  expand(chosen, integers(shard.devices), placement);
  return placement;
}

Agent::Agent(std::shared_ptr<const Problem> problem, const AgentOptions& options, ThreadPool& pool,
             AgentPeers peers) {
  options.check(peers.size);
  impl_ = std::make_unique<Impl>(std::move(problem), options, pool, std::move(peers));
}

Agent::~Agent() = default;

int32_t Agent::groups() const { return impl_->groups; }
int32_t Agent::units() const { return impl_->units.size(); }
const AgentOptions& Agent::options() const { return impl_->options; }
int64_t Agent::parameter_count() const { return impl_->layout.size(); }
int64_t Agent::gradient_steps() const { return impl_->weights.steps; }
int32_t Agent::first_sample() const { return impl_->first_sample; }
int32_t Agent::own_samples() const { return impl_->samples; }

std::span<const int32_t> Agent::sample() {
  impl_->sample();
  return impl_->placements;
}

UpdateReport Agent::update(std::span<const double> rewards, std::span<const uint8_t> failing,
                           std::span<const RewardSlopes> slopes) {
  auto& self = *impl_;
  const auto samples = static_cast<size_t>(self.options.samples);
  if (!self.sampled) throw ArgumentError("update: there is no batch of samples to learn from");
  if (rewards.size() != samples)
    throw ArgumentError("update: expected {} rewards, got {}", samples, rewards.size());
  if (!failing.empty() && failing.size() != samples)
    throw ArgumentError("update: expected {} failure flags, got {}", samples, failing.size());
  for (size_t i = 0; i < samples; ++i)
    if (!std::isfinite(rewards[i]))
      throw ArgumentError("update: reward {}: expected a finite number, got {}", i + 1, rewards[i]);
  const int32_t after = self.options.exclude_failing_after;
  std::vector<uint8_t> weight(samples, 1);
  if (after >= 0 && self.weights.steps >= after)
    for (size_t i = 0; i < failing.size(); ++i) weight[i] = failing[i] ? 0 : 1;
  if (self.options.action_credit && slopes.size() != samples)
    throw ArgumentError("update: expected {} gradients of the reward (option 'credit' is 'action'), got {}", samples,
                        slopes.size());
  return self.update(rewards, weight, slopes);
}

std::vector<int32_t> Agent::greedy() { return impl_->greedy(); }

BatchActions Agent::actions() const {
  auto& self = *impl_;
  if (!self.sampled) throw ArgumentError("actions: there is no batch of samples");
  const auto floats = [](torch::Tensor& tensor) -> std::span<const float> {
    tensor = tensor.contiguous().cpu();
    return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
  };
  return {self.group_of, self.devices, floats(self.old_group), floats(self.old_device)};
}

}  // namespace trinity

/// Called by learn/agent_options.cpp: throws ArgumentError if `name` is no device of this LibTorch.
extern "C" void trinity_check_policy_device(const std::string& name) {
  const auto refuse = [&](const std::string& reason) {
    throw trinity::ArgumentError("option 'device': expected cpu or cuda:0 and the like, got '{}'{}", name, reason);
  };
  const bool numbered = name.starts_with("cuda:") && name.size() > 5 && name.size() < 8 &&
                        name.find_first_not_of("0123456789", 5) == std::string::npos;
  if (name != "cuda" && !numbered) refuse("");
  const auto count = static_cast<int>(torch::cuda::device_count());
  if (count == 0) refuse(" (this LibTorch has no CUDA, or the machine no GPU)");
  if (numbered && std::stoi(name.substr(5)) >= count)
    refuse(fmt::format(" (there are {} GPUs)", count));
}
