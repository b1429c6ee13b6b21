#include "learn/agent.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "base/stop.h"
#include "learn/agent_impl.h"

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

/// The first of the samples that process `rank` takes.
int32_t share_begin(int32_t samples, int32_t rank, int32_t size) {
  return static_cast<int32_t>(int64_t{samples} * rank / size);
}

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Stopwatch::Stopwatch(double& total) : total_(total), start_(clock_s()) {}
Stopwatch::~Stopwatch() { total_ += clock_s() - start_; }

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
      embedder(*problem, units, features, groups, options.features) {
  partition_shape = {units.size(), options.features.type_index ? 0 : features.type_count,
                     features.width, groups, options.linear_partition};
  schedule_shape = {groups,
                    embedder.width(),
                    problem->devices(),
                    options.hidden,
                    options.temperature,
                    options.tanh_constant,
                    options.switch_probability > 0,
                    options.layers};
  add_partition_weights(partition_shape, parameters);
  add_schedule_weights(schedule_shape, parameters);
  check_memory();
  parameters.initialise("partition", options.seed);
  parameters.initialise("schedule", options.seed);
  if (schedule_shape.stays)
    *parameters.data("schedule.stay") =
        static_cast<float>(staying_logit(options, options.switch_probability, problem->devices()));
  adam.reset(parameters.size());
  gradient.resize(parameters.values.size());
  partition = std::make_unique<PartitionPasses>(partition_shape, features, parameters);
  if (options.contiguity > 0)
    partition->prior = contiguous_prior(work_position(*problem, units), groups, options.contiguity);
  if (options.plain_torch || options.layers > 1 || options.device != "cpu") {
    torch_policy = make_torch_policy(options.device, partition_shape, schedule_shape, features);
    torch_policy->set_prior(partition->prior);
  }
  if (options.dealt > 0) device_prior = dealt_logits(options, groups, problem->devices());
  make_passes();
  pack();
}

/// Throws LimitError when samples, groups and width multiply to more than a machine has.
void Agent::Impl::check_memory() const {
  constexpr double kMostBytes = 24e9;
  const auto k = static_cast<double>(groups), width = static_cast<double>(schedule_shape.width);
  const double rows = static_cast<double>(samples) * k;
  // A row keeps some 40 vectors of the hidden width, a weight a dozen copies of itself.
  const double bytes = 4 * (rows * (2 * k + 40.0 * options.hidden + 2 * width) +
                            12 * static_cast<double>(parameters.size()));
  if (bytes > kMostBytes)
    throw LimitError(fmt::format(
        "{} samples of {} groups at option 'hidden' = {} take about {:.0f} GB, the limit is {:.0f}",
        samples, groups, options.hidden, bytes / 1e9, kMostBytes / 1e9));
}

/// Shards of about equal size, and the arrays of a batch.
void Agent::Impl::make_passes() {
  layout = std::make_unique<ScheduleLayout>(schedule_shape, parameters);
  packed = std::make_unique<PackedSchedule>(schedule_shape, *layout);
  const int32_t count = (samples + kShard - 1) / kShard;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t first = static_cast<int32_t>(int64_t{samples} * i / count);
    const int32_t end = static_cast<int32_t>(int64_t{samples} * (i + 1) / count);
    passes.emplace_back(schedule_shape, *layout, *packed, end - first);
  }
  const auto size = static_cast<size_t>(samples);
  const size_t by_unit = size * static_cast<size_t>(units.size());
  const size_t by_group = size * static_cast<size_t>(groups);
  for (auto* numbers : {&old_group, &group_taken, &group_coefficient}) numbers->resize(by_unit);
  for (auto* numbers : {&old_device, &device_taken, &device_coefficient}) numbers->resize(by_group);
  group_of.resize(by_unit);
  ordered_group.resize(by_unit);
  devices.resize(by_group);
}

int32_t Agent::Impl::shard_of(int32_t sample) const {
  int32_t shard = 0;
  while (shard + 1 < shards() && first_of(shard + 1) <= sample) ++shard;
  return shard;
}

void Agent::Impl::pack() {
  if (torch_policy) torch_policy->set_weights(parameters);
  pool.parallel_for(packed->pieces() + 1, [&](int piece, int) {
    if (piece < packed->pieces())
      packed->pack_piece(piece, parameters.values.data());
    else
      partition->pack(parameters.values.data());
  });
}

/// Samples dropout's masks number `index`, the number that the options ask for.
void Agent::Impl::draw_masks(uint64_t index) {
  if (options.dropout <= 0) return;
  const bool each = options.dropout_mask == DropoutMask::sample;
  const auto mask = static_cast<size_t>(units.size()) * PartitionShape::kFirst;
  const auto copies = static_cast<size_t>(each ? samples : 1);
  const auto first =
      each ? index * static_cast<uint64_t>(options.samples) + static_cast<uint64_t>(first_sample)
           : index;
  std::vector<float> scale(copies * mask);
  const auto kept = static_cast<float>(1 / (1 - options.dropout));
  pool.parallel_for(static_cast<int>(copies), [&](int copy, int) {
    RandomStream random(options.seed, "dropout", first + static_cast<uint64_t>(copy));
    float* out = scale.data() + static_cast<size_t>(copy) * mask;
    for (size_t i = 0; i < mask; ++i) out[i] = random.uniform() < options.dropout ? 0.0f : kept;
  });
  partition->set_masks(std::move(scale));
}

void Agent::Impl::forward_partition() {
  if (torch_policy) {
    torch_policy->forward_partition(partition->masks(), partition->log_probability);
    for (size_t i = 0; i < partition->probability.size(); ++i)
      partition->probability[i] = std::exp(partition->log_probability[i]);
    return;
  }
  pool.parallel_for(partition->chunks(), [&](int chunk, int) {
    partition->forward_chunk(chunk, parameters.values.data());
  });
}

int32_t Agent::Impl::draw_group(int32_t sample, int64_t unit, RandomStream& random) const {
  const double amplitude = noise();
  if (amplitude > 0) return draw_noisy(partition->row(sample, unit), groups, random, amplitude);
  return draw(partition->chances(sample, unit), groups, random);
}

void Agent::Impl::draw_groups(int32_t sample) {
  RandomStream random(options.seed, "groups", stream(sample));
  const auto n = static_cast<size_t>(units.size()), first = static_cast<size_t>(sample) * n;
  for (size_t u = 0; u < n; ++u) {
    const int32_t g = draw_group(sample, static_cast<int64_t>(u), random);
    group_of[first + u] = ordered_group[first + u] = g;
    old_group[first + u] = group_taken[first + u] =
        partition->row(sample, static_cast<int64_t>(u))[g];
  }
  const auto labels = order({ordered_group.data() + first, n});
  int32_t index = 0;
  SchedulePasses& pass = pass_of(sample, index);
  embed({ordered_group.data() + first, n}, labels, pass, index);
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

/// Writes the inputs of the schedule network for a grouping; `labels` are its groups as sampled.
void Agent::Impl::embed(std::span<const int32_t> grouping, std::span<const int32_t> labels,
                        SchedulePasses& pass, int32_t row) const {
  embedder.embed(grouping, pass.group(row, 0), pass.group_stride());
  const auto d = static_cast<size_t>(problem->devices());
  if (device_prior.empty()) {
    std::fill_n(pass.prior(row), labels.size() * d, 0.0f);
    return;
  }
  for (size_t t = 0; t < labels.size(); ++t)
    std::copy_n(device_prior.data() + static_cast<size_t>(labels[t]) * d, d,
                pass.prior(row) + t * d);
}

void Agent::Impl::sample() {
  const Stopwatch watch(profile.sample_s);
  ++batch;
  sampled = false;
  draw_masks(batch);
  forward_partition();
  const auto k = static_cast<size_t>(groups);
  pool.parallel_for(shards(), [&](int shard, int) {
    poll_stop();
    const int32_t first = first_of(shard), end = first_of(shard + 1);
    std::vector<RandomStream> streams;
    for (int32_t c = first; c < end; ++c) {
      draw_groups(c);
      streams.emplace_back(options.seed, "devices", stream(c));
    }
    SchedulePasses& pass = passes[shard];
    pass.groups_changed();
    if (torch_policy) return;
    pass.sample(parameters.values.data(), [&](int64_t i, int64_t, const float* row) {
      return draw_noisy(row, problem->devices(), streams[i], noise());
    });
    std::copy(pass.devices.begin(), pass.devices.end(),
              devices.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(first) * k));
    std::copy(pass.taken.begin(), pass.taken.end(),
              device_taken.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(first) * k));
  });
  if (torch_policy) sample_by_torch();
  old_device = device_taken;
  expand(ordered_group, devices, placements);
  sampled = true;
}

void Agent::Impl::sample_by_torch() {
  std::vector<RandomStream> streams;
  for (int32_t c = 0; c < samples; ++c) streams.emplace_back(options.seed, "devices", stream(c));
  torch_policy->sample(
      group_rows(), prior_rows(), samples,
      [&](int64_t s, int64_t, const float* row) {
        return draw_noisy(row, problem->devices(), streams[s], noise());
      },
      devices, device_taken);
}

/// Group embeddings of the batch as [S, K, W].
std::vector<float> Agent::Impl::group_rows() {
  const auto width = static_cast<size_t>(schedule_shape.width);
  std::vector<float> rows;
  rows.reserve(devices.size() * width);
  for (int32_t c = 0; c < samples; ++c) {
    int32_t index = 0;
    SchedulePasses& pass = pass_of(c, index);
    for (int32_t g = 0; g < groups; ++g)
      rows.insert(rows.end(), pass.group(index, g), pass.group(index, g) + width);
  }
  return rows;
}

/// Their constant logits as [S, K, D].
std::vector<float> Agent::Impl::prior_rows() {
  const auto count = static_cast<size_t>(groups) * static_cast<size_t>(problem->devices());
  std::vector<float> rows;
  for (int32_t c = 0; c < samples; ++c) {
    int32_t index = 0;
    SchedulePasses& pass = pass_of(c, index);
    rows.insert(rows.end(), pass.prior(index), pass.prior(index) + count);
  }
  return rows;
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
  partition->set_masks({});
  forward_partition();
  std::vector<int32_t> chosen;
  for (int64_t u = 0; u < units.size(); ++u)
    chosen.push_back(arg_max(partition->row(0, u), groups));
  const auto labels = order(chosen);
  SchedulePasses pass(schedule_shape, *layout, *packed, 1);
  embed(chosen, labels, pass, 0);
  pass.groups_changed();
  const auto best = [&](int64_t, int64_t, const float* row) {
    return arg_max(row, problem->devices());
  };
  if (torch_policy) {
    const auto k = static_cast<size_t>(groups), d = static_cast<size_t>(problem->devices());
    torch_policy->sample({pass.group(0, 0), k * static_cast<size_t>(schedule_shape.width)},
                         {pass.prior(0), k * d}, 1, best, pass.devices, pass.taken);
  } else {
    pass.sample(parameters.values.data(), best);
  }
  std::vector<int32_t> placement;
  expand(chosen, pass.devices, placement);
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
int64_t Agent::parameter_count() const { return impl_->parameters.size(); }
int64_t Agent::gradient_steps() const { return impl_->adam.steps; }
int32_t Agent::first_sample() const { return impl_->first_sample; }
int32_t Agent::own_samples() const { return impl_->samples; }
AgentProfile Agent::profile() const { return impl_->profile; }

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
    throw ArgumentError(
        fmt::format("update: expected {} rewards, got {}", samples, rewards.size()));
  if (!failing.empty() && failing.size() != samples)
    throw ArgumentError(
        fmt::format("update: expected {} marks of failure, got {}", samples, failing.size()));
  for (size_t i = 0; i < samples; ++i)
    if (!std::isfinite(rewards[i]))
      throw ArgumentError(fmt::format("update: reward {} is {}", i + 1, rewards[i]));
  const int32_t after = self.options.exclude_failing_after;
  std::vector<uint8_t> weight(samples, 1);
  if (after >= 0 && self.adam.steps >= after)
    for (size_t i = 0; i < failing.size(); ++i) weight[i] = failing[i] ? 0 : 1;
  if (self.options.action_credit && slopes.size() != samples)
    throw ArgumentError(fmt::format(
        "update: expected {} slopes of the reward (option 'credit' is 'action'), got {}", samples,
        slopes.size()));
  return self.update(rewards, weight, slopes);
}

std::vector<int32_t> Agent::greedy() { return impl_->greedy(); }

void Agent::reset_baseline(double value) {
  impl_->baseline = value;
  impl_->squares = std::numeric_limits<double>::quiet_NaN();
}

BatchActions Agent::actions() const {
  const auto& self = *impl_;
  if (!self.sampled) throw ArgumentError("actions: there is no batch of samples");
  return {self.group_of, self.devices, self.old_group, self.old_device};
}

}  // namespace trinity
