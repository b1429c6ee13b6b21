#include "learn/agent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/stop.h"
#include "learn/networks.h"
#include "learn/ppo.h"

namespace trinity {
namespace {

/// Samples that one task of the pool evaluates. Fixed, so that sums of gradients never depend on
/// the number of threads.
constexpr int32_t kShard = 8;

/// Draws an index from log-probabilities.
int32_t draw(const float* log_probability, int64_t count, RandomStream& random, double noise) {
  thread_local std::vector<double> cumulative;
  cumulative.clear();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double shift = noise > 0 ? noise * (2 * random.uniform() - 1) : 0;
    cumulative.push_back(sum += std::exp(static_cast<double>(log_probability[i]) + shift));
  }
  const double at = random.uniform() * sum;
  int64_t index = 0;
  while (index + 1 < count && cumulative[static_cast<size_t>(index)] <= at) ++index;
  return static_cast<int32_t>(index);
}

int32_t arg_max(const float* values, int64_t count) {
  return static_cast<int32_t>(std::max_element(values, values + count) - values);
}

/// Runs `body`; LibTorch's errors become ours, without their list of C++ frames.
template <class Body>
auto torch_call(Body body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    throw Error(fmt::format("LibTorch: {}", error.what_without_backtrace()));
  }
}

void check_options(const AgentOptions& o) {
  const auto range = [](const char* name, double value, double low, double high) {
    if (!(value >= low && value <= high))
      throw ArgumentError(
          fmt::format("option '{}': expected {} to {}, got {}", name, low, high, value));
  };
  range("groups", o.groups, 0, 4096);
  range("samples", o.samples, 1, 4096);
  range("epochs", o.epochs, 1, 100);
  range("learning_rate", o.learning_rate, 1e-9, 10);
  range("clip", o.clip, 1e-6, 10);
  range("entropy_weight", o.entropy_weight, 0, 100);
  range("gradient_norm", o.gradient_norm, 1e-9, 1e9);
  range("temperature", o.temperature, 1e-6, 1e6);
  range("tanh_constant", o.tanh_constant, 1e-6, 1e3);
  range("baseline_n", o.baseline_n, 1, 1e9);
  range("noise_amplitude", o.noise_amplitude, 0, 100);
  range("noise_steps", o.noise_steps, 0, 1e9);
  range("dropout", o.dropout, 0, 0.99);
  range("switch_probability", o.switch_probability, 0, 0.99);
  range("contiguity", o.contiguity, 0, 1e6);
  range("hidden", o.hidden, 1, 4096);
}

}  // namespace

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

struct Agent::Impl {
  Impl(std::shared_ptr<const Problem> problem_in, const AgentOptions& options_in,
       ThreadPool& pool_in)
      : problem(std::move(problem_in)),
        options(options_in),
        pool(pool_in),
        units(make_unit_graph(problem->graph())),
        features(unit_features(*problem, units, options.features, options.seed)),
        groups(group_count()),
        embedder(*problem, units, features, groups, options.features.mean_output_size),
        partition(features.type_count, features.width, groups),
        schedule(embedder.width(), problem->devices(), options.hidden, options.temperature,
                 options.tanh_constant) {
    initialise(*partition, options.seed, "partition");
    if (options.contiguity > 0)
      partition->start_contiguous(work_position(*problem, units), options.contiguity);
    initialise(*schedule, options.seed, "schedule");
    if (options.switch_probability > 0) schedule->start_staying(options.switch_probability);
    partition_parameters = partition->parameters();
    schedule_parameters = schedule->parameters();
    auto all = partition_parameters;
    all.insert(all.end(), schedule_parameters.begin(), schedule_parameters.end());
    optimiser =
        std::make_unique<torch::optim::Adam>(all, torch::optim::AdamOptions(options.learning_rate));
    unit_types = torch::empty({units.size()}, torch::kLong);
    std::copy(features.type.begin(), features.type.end(), unit_types.data_ptr<int64_t>());
    unit_values = torch::empty({units.size(), features.width});
    std::copy(features.values.begin(), features.values.end(), unit_values.data_ptr<float>());
  }

  int32_t group_count() const {
    int64_t count = options.groups;
    if (count == 0) count = std::min<int64_t>(256, 20 * int64_t{problem->devices()});
    return static_cast<int32_t>(std::min<int64_t>(count, units.size()));
  }

  /// Dropout's mask of the present batch, or an undefined tensor.
  torch::Tensor dropout_mask() const {
    if (options.dropout <= 0) return {};
    RandomStream random(options.seed, "dropout", batch);
    auto scale = torch::empty({units.size(), PartitionNetImpl::kHidden});
    float* data = scale.data_ptr<float>();
    const auto kept = static_cast<float>(1 / (1 - options.dropout));
    for (int64_t i = 0; i < scale.numel(); ++i)
      data[i] = random.uniform() < options.dropout ? 0.0f : kept;
    return scale;
  }

  double noise() const {
    return batch <= static_cast<uint64_t>(options.noise_steps) ? options.noise_amplitude : 0;
  }

  int32_t shards() const { return (options.samples + kShard - 1) / kShard; }
  std::pair<int32_t, int32_t> shard(int32_t index) const {
    const int32_t first = index * kShard;
    return {first, std::min(kShard, options.samples - first)};
  }

  void sample_groups() {
    const int64_t count = options.samples, n = units.size();
    group_of = torch::empty({count, n}, torch::kLong);
    ordered_group.resize(static_cast<size_t>(count * n));
    old_group = torch::empty({count, n});
    group_values = torch::empty({count, groups, embedder.width()});
    mask = dropout_mask();
    torch::NoGradGuard no_grad;
    const auto log_probability = partition->forward(unit_types, unit_values, mask).contiguous();
    const float* rows = log_probability.data_ptr<float>();
    pool.parallel_for(options.samples, [&](int c, int) {
      RandomStream random(options.seed, "groups", stream(c));
      int32_t* chosen = ordered_group.data() + c * n;
      int64_t* out = group_of.data_ptr<int64_t>() + c * n;
      float* old = old_group.data_ptr<float>() + c * n;
      for (int64_t u = 0; u < n; ++u) {
        const float* row = rows + u * groups;
        const int32_t g = draw(row, groups, random, noise());
        chosen[u] = g;
        out[u] = g;
        old[u] = row[g];
      }
      order({chosen, static_cast<size_t>(n)});
      embedder.embed({chosen, static_cast<size_t>(n)},
                     group_values.data_ptr<float>() + int64_t{c} * groups * embedder.width());
    });
  }

  /// Renumbers groups by the mean place of their members, empty ones last.
  void order(std::span<int32_t> group) const {
    if (!options.order_groups) return;
    const auto k = static_cast<size_t>(groups);
    std::vector<double> place(k, 0), members(k, 0);
    for (size_t u = 0; u < group.size(); ++u) {
      place[static_cast<size_t>(group[u])] += units.first_operator[u];
      members[static_cast<size_t>(group[u])] += 1;
    }
    for (size_t g = 0; g < k; ++g)
      place[g] = members[g] > 0 ? place[g] / members[g] : std::numeric_limits<double>::infinity();
    std::vector<int32_t> by_place(k), rank(k);
    std::iota(by_place.begin(), by_place.end(), 0);
    std::stable_sort(by_place.begin(), by_place.end(), [&](int32_t a, int32_t b) {
      return place[static_cast<size_t>(a)] < place[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < k; ++i) rank[static_cast<size_t>(by_place[i])] = static_cast<int32_t>(i);
    for (int32_t& g : group) g = rank[static_cast<size_t>(g)];
  }

  /// Decodes one shard: fills devices and old_device rows [first, first + count). `choose` maps a
  /// sample and its log-probabilities to a device.
  template <class Choose>
  void decode(int32_t first, int32_t count, const torch::Tensor& values, Choose choose) {
    torch::NoGradGuard no_grad;
    const auto encoded = schedule->encode(values.slice(0, first, first + count));
    auto state = encoded.state, cell = encoded.cell;
    auto previous = torch::full({count}, schedule->start_symbol(), torch::kLong);
    for (int64_t t = 0; t < groups; ++t) {
      const auto rows = schedule->step(encoded, previous, state, cell).contiguous();
      previous = torch::empty({count}, torch::kLong);
      for (int32_t i = 0; i < count; ++i) {
        const float* row = rows.data_ptr<float>() + int64_t{i} * problem->devices();
        const int32_t device = choose(first + i, row);
        previous.data_ptr<int64_t>()[i] = device;
        devices.data_ptr<int64_t>()[int64_t{first + i} * groups + t] = device;
        old_device.data_ptr<float>()[int64_t{first + i} * groups + t] = row[device];
      }
    }
  }

  void sample_devices() {
    devices = torch::empty({options.samples, groups}, torch::kLong);
    old_device = torch::empty({options.samples, groups});
    pool.parallel_for(shards(), [&](int s, int) {
      poll_stop();
      const auto [first, count] = shard(s);
      std::vector<RandomStream> streams;
      for (int32_t i = 0; i < count; ++i)
        streams.emplace_back(options.seed, "devices", stream(first + i));
      decode(first, count, group_values, [&, first = first](int32_t c, const float* row) {
        return draw(row, problem->devices(), streams[static_cast<size_t>(c - first)], noise());
      });
    });
  }

  uint64_t stream(int32_t sample) const {
    return batch * static_cast<uint64_t>(options.samples) + static_cast<uint64_t>(sample);
  }

  void expand(int32_t count) {
    const auto unit_of = problem->graph().units();
    placements.resize(static_cast<size_t>(count) * unit_of.size());
    auto out = placements.begin();
    for (int32_t c = 0; c < count; ++c) {
      const int32_t* group = ordered_group.data() + int64_t{c} * units.size();
      const int64_t* device = devices.data_ptr<int64_t>() + int64_t{c} * groups;
      for (const int32_t unit : unit_of) *out++ = static_cast<int32_t>(device[group[unit]]);
    }
  }

  using Gradients = std::vector<torch::Tensor>;

  struct Part {
    Gradients gradients;
    double entropy = 0, clipped = 0;
  };

  /// Objective of the partition network over the whole batch.
  Part partition_part(const torch::Tensor& advantage) {
    const auto rows = partition->forward(unit_types, unit_values, mask);
    const auto taken = rows.gather(1, group_of.t()).t();
    const auto objective = clipped_objective(taken, old_group, advantage, options.clip);
    const auto entropy = -(rows.exp() * rows).sum(1).mean();
    return finish(objective, entropy, 1.0, partition_parameters);
  }

  /// Objective of the schedule network over one shard, weighted by its share of the batch.
  Part schedule_part(const torch::Tensor& advantage, int32_t first, int32_t count) {
    const auto part = [&](const torch::Tensor& tensor) {
      return tensor.slice(0, first, first + count);
    };
    const auto chosen = part(devices);
    const auto rows = schedule->evaluate(schedule->encode(part(group_values)), chosen);
    const auto taken = rows.gather(2, chosen.unsqueeze(2)).squeeze(2);
    const auto objective =
        clipped_objective(taken, part(old_device), part(advantage), options.clip);
    const auto entropy = -(rows.exp() * rows).sum(2).mean();
    return finish(objective, entropy, static_cast<double>(count) / options.samples,
                  schedule_parameters);
  }

  Part finish(const ClippedObjective& objective, const torch::Tensor& entropy, double weight,
              const std::vector<torch::Tensor>& parameters) const {
    const auto loss = -(objective.value + options.entropy_weight * entropy) * weight;
    Part part;
    part.gradients = torch::autograd::grad({loss}, parameters, {}, false, false, true);
    part.entropy = entropy.item<double>() * weight;
    part.clipped = objective.clipped.item<double>() * weight;
    return part;
  }

  /// One gradient step over the batch; parts are summed in a fixed order.
  void step(const torch::Tensor& advantage, UpdateReport& report) {
    std::vector<Part> parts(static_cast<size_t>(shards()) + 1);
    pool.parallel_for(shards() + 1, [&](int item, int) {
      poll_stop();
      if (item == 0) {
        parts[0] = partition_part(advantage);
        return;
      }
      const auto [first, count] = shard(item - 1);
      parts[static_cast<size_t>(item)] = schedule_part(advantage, first, count);
    });
    torch::NoGradGuard no_grad;
    set_gradients(partition_parameters, parts, 0, 1);
    set_gradients(schedule_parameters, parts, 1, parts.size());
    auto all = partition_parameters;
    all.insert(all.end(), schedule_parameters.begin(), schedule_parameters.end());
    report.gradient_norm = torch::nn::utils::clip_grad_norm_(all, options.gradient_norm);
    optimiser->step();
    report.entropy_groups = parts[0].entropy;
    report.entropy_devices = 0;
    const double units_share = static_cast<double>(units.size()) / (units.size() + groups);
    report.clipped_share = parts[0].clipped * units_share;
    for (size_t i = 1; i < parts.size(); ++i) {
      report.entropy_devices += parts[i].entropy;
      report.clipped_share += parts[i].clipped * (1 - units_share);
    }
  }

  static void set_gradients(std::vector<torch::Tensor>& parameters, const std::vector<Part>& parts,
                            size_t first, size_t last) {
    for (size_t p = 0; p < parameters.size(); ++p) {
      torch::Tensor sum;
      for (size_t i = first; i < last; ++i) {
        const auto& gradient = parts[i].gradients[p];
        if (gradient.defined()) sum = sum.defined() ? sum + gradient : gradient;
      }
      parameters[p].mutable_grad() = sum;
    }
  }

  std::shared_ptr<const Problem> problem;
  AgentOptions options;
  ThreadPool& pool;
  UnitGraph units;
  UnitFeatures features;
  int32_t groups;
  GroupFeatures embedder;
  PartitionNet partition;
  ScheduleNet schedule;
  std::vector<torch::Tensor> partition_parameters, schedule_parameters;
  std::unique_ptr<torch::optim::Adam> optimiser;
  torch::Tensor unit_types, unit_values, mask;
  // The latest batch: group of every unit [S, U] as drawn and as the schedule network numbers it,
  // device of every group [S, K], log-probabilities of both without noise, group embeddings
  // [S, K, W], placements of operators.
  torch::Tensor group_of, devices, old_group, old_device, group_values;
  std::vector<int32_t> ordered_group, placements;
  uint64_t batch = 0;
  bool sampled = false;
  // EMAs over batches: of the mean reward, and of the mean squared advantage.
  double baseline = std::numeric_limits<double>::quiet_NaN();
  double squares = std::numeric_limits<double>::quiet_NaN();
};

Agent::Agent(std::shared_ptr<const Problem> problem, const AgentOptions& options,
             ThreadPool& pool) {
  check_options(options);
  impl_ = std::make_unique<Impl>(std::move(problem), options, pool);
}

Agent::~Agent() = default;

int32_t Agent::groups() const { return impl_->groups; }
const AgentOptions& Agent::options() const { return impl_->options; }

int64_t Agent::parameter_count() const {
  int64_t count = 0;
  for (const auto& weight : impl_->partition_parameters) count += weight.numel();
  for (const auto& weight : impl_->schedule_parameters) count += weight.numel();
  return count;
}

std::span<const int32_t> Agent::sample() {
  return torch_call([this]() -> std::span<const int32_t> {
    ++impl_->batch;
    impl_->sample_groups();
    impl_->sample_devices();
    impl_->expand(impl_->options.samples);
    impl_->sampled = true;
    return impl_->placements;
  });
}

UpdateReport Agent::update(std::span<const double> rewards) {
  auto& self = *impl_;
  if (!self.sampled) throw ArgumentError("update: there is no batch of samples to learn from");
  if (rewards.size() != static_cast<size_t>(self.options.samples))
    throw ArgumentError(
        fmt::format("update: expected {} rewards, got {}", self.options.samples, rewards.size()));
  UpdateReport report;
  for (size_t i = 0; i < rewards.size(); ++i) {
    if (!std::isfinite(rewards[i]))
      throw ArgumentError(fmt::format("update: reward {} is {}", i + 1, rewards[i]));
    report.mean_reward += rewards[i] / static_cast<double>(rewards.size());
  }
  if (std::isnan(self.baseline)) self.baseline = report.mean_reward;
  auto advantage = torch::empty({static_cast<int64_t>(rewards.size()), 1});
  double squares = 0;
  for (const double reward : rewards)
    squares += (reward - self.baseline) * (reward - self.baseline);
  squares /= static_cast<double>(rewards.size());
  const double n = self.options.baseline_n;
  self.squares =
      std::isnan(self.squares) ? squares : (2 * squares + (n - 1) * self.squares) / (n + 1);
  const bool normalise = self.options.normalise_advantage && self.squares > 1e-24;
  const double scale = normalise ? 1 / std::sqrt(std::max(squares, self.squares)) : 1;
  for (size_t i = 0; i < rewards.size(); ++i)
    advantage.data_ptr<float>()[i] = static_cast<float>((rewards[i] - self.baseline) * scale);
  torch_call([&] {
    for (int32_t epoch = 0; epoch < self.options.epochs; ++epoch) self.step(advantage, report);
  });
  self.baseline = (2 * report.mean_reward + (n - 1) * self.baseline) / (n + 1);
  report.baseline = self.baseline;
  self.sampled = false;
  return report;
}

std::vector<int32_t> Agent::greedy() {
  auto& self = *impl_;
  torch::NoGradGuard no_grad;
  self.sampled = false;
  const auto rows = self.partition->forward(self.unit_types, self.unit_values, {}).contiguous();
  auto& chosen = self.ordered_group;
  chosen.clear();
  for (int64_t u = 0; u < self.units.size(); ++u)
    chosen.push_back(arg_max(rows.data_ptr<float>() + u * self.groups, self.groups));
  self.order(chosen);
  auto values = torch::empty({1, self.groups, self.embedder.width()});
  self.embedder.embed(chosen, values.data_ptr<float>());
  self.devices = torch::empty({1, self.groups}, torch::kLong);
  self.old_device = torch::empty({1, self.groups});
  self.decode(0, 1, values,
              [&](int32_t, const float* row) { return arg_max(row, self.problem->devices()); });
  self.expand(1);
  return self.placements;
}

}  // namespace trinity
