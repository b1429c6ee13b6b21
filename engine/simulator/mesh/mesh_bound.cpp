#include "simulator/mesh/mesh_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/index.h"
#include "simulator/mesh/replica_messages.h"
#include "strategy/lower.h"
#include "strategy/mesh_schedule.h"

namespace trinity {
namespace {

using Units = std::vector<UnitProfile>;

/// A virtual stage: its units together.
struct Chunk : UnitProfile {
  bool empty = true;             // no units: the input is passed on
  SpreadBytes gathered, layer;   // trained weights of layers; of the largest layer, apart
};

/// Units of a network with this many layers: the second-last one is repeated.
std::shared_ptr<const Units> stretched(std::shared_ptr<const Units> units, int32_t layers) {
  const auto own = static_cast<int32_t>(units->size()) - 2;
  if (layers <= own || own < 3) return units;
  auto many = *units;
  many.insert(many.begin() + own - 1, at(layers - own), (*units)[at(own) - 1]);
  return std::make_shared<const Units>(std::move(many));
}

void add(SpreadBytes& sum, const SpreadBytes& bytes) {
  sum.all += bytes.all;
  sum.spread += bytes.spread;
}

void widen(SpreadBytes& most, const SpreadBytes& one) {
  most.all = std::max(most.all, one.all);
  most.spread = std::max(most.spread, one.spread);
}

/// Appends the next unit of a pass.
void follow(UnitPass& chunk, const UnitPass& unit, bool first) {
  if (first) {
    chunk = unit;
    return;
  }
  chunk.alone = chunk.to_next + unit.alone;
  chunk.alone_after = chunk.to_next_after + unit.alone;
  chunk.hands_on = chunk.to_next + unit.hands_on;
  chunk.hands_on_after = chunk.to_next_after + unit.hands_on;
  chunk.least_bytes = unit.least_bytes;
  chunk.to_next_after += unit.to_next;
  chunk.to_next += unit.to_next;
}

Chunk chunk_of(const Units& units, size_t first, size_t end) {
  Chunk chunk;
  chunk.empty = first == end;
  for (size_t u = first; u < end; ++u) follow(chunk.forward, units[u].forward, u == first);
  for (size_t u = end; u-- > first;)
    follow(chunk.backward, u + 1 == end ? units[u].first_backward : units[u].backward, u + 1 == end);
  for (size_t u = first; u < end; ++u) {
    const auto& unit = units[u];
    chunk.weight_ns += unit.weight_ns;
    chunk.backward_work_ns += unit.backward_work_ns;
    chunk.update_ns += unit.update_ns;
    chunk.spread_update_ns += unit.spread_update_ns;
    chunk.host_update_ns += unit.host_update_ns;
    chunk.spread_host_update_ns += unit.spread_host_update_ns;
    chunk.kept_bytes += unit.kept_bytes;
    chunk.delayed_bytes += unit.delayed_bytes;
    add(chunk.weights, unit.weights);
    add(chunk.optimizer, unit.optimizer);
    add(chunk.gradients, unit.gradients);
    add(chunk.trained, unit.trained);
    widen(chunk.largest_gradient, unit.largest_gradient);
    widen(chunk.largest_trained, unit.largest_trained);
    if (u == 0 || u + 1 == units.size()) continue;
    add(chunk.gathered, unit.trained);
    widen(chunk.layer, {unit.trained.all - unit.trained.spread, unit.trained.spread});
  }
  return chunk;
}

/// The same strategy with its places inside stages rotated so that `first` is the first.
Parallelism turned(const Parallelism& given, int32_t first) {
  const auto& mesh = given.mesh;
  Parallelism other = given;
  for (int32_t& place : other.inside) place = (place + mesh.placement - first) % mesh.placement;
  other.mesh.devices.clear();
  std::vector<int32_t> devices(at(mesh.device_count()));
  for (int32_t stage = 0; stage < mesh.pipeline; ++stage)
    for (int32_t replica = 0; replica < mesh.data; ++replica)
      for (int32_t part = 0; part < mesh.width(); ++part)
        devices[at(other.mesh.device(stage, replica, part))] =
            mesh.device(stage, replica, (part + first * mesh.parts()) % mesh.width());
  other.mesh.devices = std::move(devices);
  return other;
}

/// Combines a bound with the bound of another place of the same stages.
void raise(MeshBound& bound, MeshBound other) {
  if (bound.memory_bytes.empty()) {
    bound = std::move(other);
    return;
  }
  bound.step_time_ns = std::max(bound.step_time_ns, other.step_time_ns);
  for (size_t s = 0; s < other.memory_bytes.size(); ++s) {
    if (other.memory_bytes[s] <= bound.memory_bytes[s]) continue;
    bound.memory_bytes[s] = other.memory_bytes[s];
    bound.weight_bytes[s] = other.weight_bytes[s];
    bound.optimizer_bytes[s] = other.optimizer_bytes[s];
    bound.gradient_bytes[s] = other.gradient_bytes[s];
  }
}

}  // namespace

/// Profiler of strategies with equal part_of(), and its profiles per type of device.
struct MeshBounder::Profile {
  std::unique_ptr<UnitProfiler> profiler;  // null if refused
  std::string refused;

  void make(const Parallelism& of, const Problem& problem) {
    try {
      profiler = std::make_unique<UnitProfiler>(of, problem.graph(), problem.cluster());
    } catch (const ArgumentError& error) {
      refused = error.what();
    }
  }
  using On = std::tuple<int32_t, double, std::vector<CollectiveGroup>>;  // type, speed, groups of collectives
  Latest<On, const Units> units{256};
};

/// Working memory of one thread.
struct MeshBounder::Scratch {
  explicit Scratch(const Cluster& cluster) : groups(cluster) {}

  CollectiveGroups groups;
  std::unordered_map<Parallelism, ReplicaMessages, Hash> messages;  // by strategies of which only the mesh is stated
  OrderKey key;
  std::vector<std::vector<ChunkTask>> orders;  // of `key`, by stage

  void make_orders(const OrderKey& of) {
    if (of == key) return;
    key = of;
    orders.clear();
    for (int32_t s = 0; s < of.pipeline; ++s)
      orders.push_back(
          chunk_order(of.schedule, of.pipeline, of.virtual_stages, of.micro_batches, s));
  }
};

/// Simulates the order of one strategy's virtual stages.
class MeshBounder::Bounding {
 public:
  Bounding(const Problem& problem, Profile& profile, const Parallelism& given, int32_t layers,
           Scratch& scratch)
      : problem_(problem), given_(given), schedule_(schedule_of(given)), p_(given.mesh.pipeline),
        v_(given.virtual_stages), m_(given.micro_batches),
        framework_bytes_(problem.framework_bytes()), keeps_(problem.keeps_gradients()) {
    std::vector<std::shared_ptr<const Units>> units;
    for (int32_t stage = 0; stage < p_; ++stage) {
      auto own = units_at(problem, profile, given.mesh, stage, scratch.groups);
      if (stage == 0) own_units_ = own->size();
      const bool same = stage > 0 && own == own_;
      units.push_back(same ? units.back() : stretched(own, layers));
      own_ = std::move(own);
    }
    count_tasks(own_units_, units[0]->size());
    share_out(units);
    find_messages(scratch);
    if (given.tasks.empty()) scratch.make_orders(order_key(given));
    orders_ = given.tasks.empty() ? scratch.orders : given.tasks;
  }

  MeshBound run() {
    MeshBound bound;
    bound.tasks = tasks_;
    const auto count = at(int64_t{chunks()} * m_);
    there_[0].assign(count, kNever), there_[1].assign(count, kNever);
    done_[0].assign(count, false), done_[1].assign(count, false);
    stages_.resize(at(p_));
    for (int32_t s = 0; s < p_; ++s) begin(s);
    for (bool moved = true; moved;) {
      moved = false;
      for (int32_t s = 0; s < p_; ++s)
        while (stages_[s].next < stages_[s].order.size() && step(s)) moved = true;
    }
    for (int32_t s = 0; s < p_; ++s) {
      const double end = end_of(s);
      bound.step_time_ns = std::max(bound.step_time_ns, static_cast<int64_t>(end));
      bound.memory_bytes.push_back(stages_[s].most);
      bound.weight_bytes.push_back(stages_[s].weights);
      bound.optimizer_bytes.push_back(stages_[s].resident - stages_[s].weights);
      bound.gradient_bytes.push_back(stages_[s].gradients);
    }
    return bound;
  }

 private:
  struct Stage {
    std::span<const ChunkTask> order;
    size_t next = 0;
    double free = 0;
    double first_gradient = -1;     // start of the first backward task
    std::vector<double> completed;  // per virtual stage: start of the task that completes its first gradient
    // Per virtual stage, micro-batches: kept; backward done except W; gradients accumulated.
    std::vector<int32_t> live, waiting, back;
    int64_t weights = 0, resident = 0, most = 0;
    int64_t fixed = 0;  // resident memory, training software, and resident gradients
    int64_t summed = 0, gradients = 0;  // minimum of other gradients held now; all of them
  };

  int32_t chunks() const { return p_ * v_; }

  /// own, whole: number of units of the problem's network and of the full network.
  void count_tasks(size_t own, size_t whole) {
    const auto longer = static_cast<double>(whole) / static_cast<double>(own);
    tasks_ = std::llround(problem_.operators() * longer) * m_;
    const auto& mesh = given_.mesh;
    if (!copies_are_alike(given_))
      tasks_ *= int64_t{mesh.data} * mesh.width();
    else if (goes_in_rings(given_))
      tasks_ *= mesh.width();
  }

  int32_t stage_of(int32_t chunk) const { return device_of_chunk(schedule_, p_, chunk); }

  void share_out(const std::vector<std::shared_ptr<const Units>>& units) {
    const auto per_chunk = layers_per_stage(given_, static_cast<int32_t>(units[0]->size()) - 2);
    size_t first = 0;
    for (int32_t c = 0; c < chunks(); ++c) {
      size_t end = first + at(per_chunk[c]);
      if (c == 0) ++end;
      if (c + 1 == chunks()) ++end;
      chunks_.push_back(chunk_of(*units[stage_of(c)], first, end));
      first = end;
    }
    const int64_t parts = given_.scatter_gather ? given_.mesh.tensor : 1;
    for (int32_t c = 0; c + 1 < chunks(); ++c) {
      wire_[0].push_back(wire(c, c + 1, chunks_[c].forward.least_bytes / parts));
      wire_[1].push_back(wire(c + 1, c, chunks_[c + 1].backward.least_bytes / parts));
    }
  }

  double wire(int32_t from, int32_t to, int64_t bytes) const {
    const int32_t a = given_.mesh.device(stage_of(from), 0, 0);
    const int32_t b = given_.mesh.device(stage_of(to), 0, 0);
    if (a == b) return 0;
    return std::max<double>(0, static_cast<double>(problem_.wire_ns(a, b, bytes)) - 1);
  }

  void find_messages(Scratch& scratch) {
    const auto queue = problem_.rules().queue;
    const bool queues = queue == QueueModel::sender || queue == QueueModel::pair || queue == QueueModel::route;
    if (given_.mesh.data == 1 || !queues || given_.sync.kind != Synchronise::all_reduce) return;
    Parallelism of;
    of.mesh = given_.mesh;
    auto found = scratch.messages.find(of);
    if (found == scratch.messages.end())
      found = scratch.messages.emplace(of, ReplicaMessages(problem_, given_.mesh, scratch.groups)).first;
    messages_ = &found->second;
  }

  int64_t share(const SpreadBytes& bytes, bool shared) const {
    if (!shared) return bytes.all;
    return (bytes.all - bytes.spread) / shard_group(given_) + bytes.spread / copies();
  }

  /// Number of replicas that shard an expert's states: those that hold the same experts.
  int64_t copies() const {
    return std::max<int64_t>(1, shard_group(given_) / given_.mesh.expert);
  }

  void begin(int32_t s) {
    auto& stage = stages_[s];
    stage.order = orders_[at(s)];
    for (auto* counts : {&stage.live, &stage.waiting, &stage.back}) counts->assign(at(chunks()), 0);
    stage.completed.assign(at(chunks()), std::numeric_limits<double>::infinity());
    for (int32_t c = 0; c < chunks(); ++c)
      if (stage_of(c) == s) {
        stage.weights += share(chunks_[c].weights, given_.zero_stage > 2);
        stage.resident += share(chunks_[c].optimizer, given_.zero_stage > 0);
      }
    if (given_.optimizer_offload_fraction > 0)
      stage.resident = static_cast<int64_t>(static_cast<double>(stage.resident) * (1 - given_.optimizer_offload_fraction));
    stage.resident += stage.weights;
    stage.fixed = stage.resident + framework_bytes_;
    for (int32_t c = 0; c < chunks() && keeps_; ++c)
      if (stage_of(c) == s) stage.fixed += share(chunks_[c].gradients, given_.zero_stage > 1);
    stage.most = stage.fixed;
  }

  /// Runs the next task of a stage; false: an input is not known yet.
  bool step(int32_t s) {
    auto& stage = stages_[s];
    const auto& task = stage.order[stage.next];
    const auto& chunk = chunks_[task.chunk];
    ++stage.next;
    if (task.work == ChunkWork::weight) {
      complete(stage, task);
      --stage.waiting[task.chunk];
      stage.free += chunk.weight_ns;
      return true;
    }
    const bool back = task.work != ChunkWork::forward;
    const auto& pass = back ? chunk.backward : chunk.forward;
    const int32_t from = back ? task.chunk + 1 : task.chunk - 1;
    double arrival = kNever;
    if (from >= 0 && from < chunks()) {
      const auto slot = at(int64_t{from} * m_ + task.micro_batch);
      if (!done_[back][slot]) {
        --stage.next;
        return false;
      }
      arrival = there_[back][slot] + wire_[back][at(std::min(from, task.chunk))];
    }
    if (back) go_back(stage, task);
    const auto own = at(int64_t{task.chunk} * m_ + task.micro_batch);
    done_[back][own] = true;
    there_[back][own] = chunk.empty ? arrival : std::max(stage.free + pass.hands_on,
                                                         arrival + pass.hands_on_after);
    if (!back) ++stage.live[task.chunk];
    const bool both = task.work == ChunkWork::backward;  // W tasks fill gaps left by messages
    // Reductions wait for the last gradient that the virtual stage sends (Lowering::find_last_sends()).
    const bool waits = both && task.chunk > 0 && given_.zero_stage < 2 && !splits_backward(schedule_);
    if (waits && stage.back[task.chunk] == m_)
      stage.completed[task.chunk] = std::max(stage.completed[task.chunk], there_[back][own]);
    const double alone = both ? std::max(pass.alone, chunk.backward_work_ns) : pass.alone;
    stage.free = std::max(stage.free + alone, arrival + pass.alone_after);
    return true;
  }

  /// At the start of a backward task.
  void go_back(Stage& stage, const ChunkTask& task) {
    int64_t bytes = stage.fixed + stage.summed;
    for (int32_t c = 0; c < chunks(); ++c)
      bytes += stage.live[c] * chunks_[c].kept_bytes + stage.waiting[c] * chunks_[c].delayed_bytes;
    stage.most = std::max(stage.most, bytes);
    --stage.live[task.chunk];
    if (task.work == ChunkWork::input) ++stage.waiting[task.chunk];
    if (stage.first_gradient < 0) stage.first_gradient = stage.free;
    // Small weights and those after the layers have no W task (Lowering::cut_backward()).
    if (splits_backward(schedule_)) stage.completed[task.chunk] = stage.free;
    if (task.work == ChunkWork::backward) complete(stage, task);
  }

  /// At the start of a task that writes weight gradients.
  void complete(Stage& stage, const ChunkTask& task) {
    const auto& gradients = chunks_[task.chunk].gradients;
    if (stage.back[task.chunk]++ == 0) {
      if (!keeps_) stage.summed += share(gradients, given_.zero_stage > 1);
      stage.gradients += share(gradients, given_.zero_stage > 1);
    }
    if (stage.back[task.chunk] < m_) return;
    if (!splits_backward(schedule_)) stage.completed[task.chunk] = stage.free;
    // They are scattered at once, while other virtual stages still have backward tasks.
    if (given_.zero_stage == 1 && !keeps_) stage.summed += share(gradients, true) - share(gradients, false);
  }

  /// When the first bucket of gradients of weights of experts (spread), or of all others, is complete. Buckets are
  /// filled in the order of the backward pass: the first one is complete once the virtual stages whose gradients fit
  /// into it are.
  double first_bucket(int32_t s, bool spread) const {
    const auto& completed = stages_[s].completed;
    double start = *std::min_element(completed.begin(), completed.end());
    const bool in_order = given_.tasks.empty() && !splits_backward(schedule_);
    int64_t sum = 0;
    for (int32_t c = chunks(); c-- > 0 && in_order && sum <= given_.bucket_bytes;) {
      const auto& gradients = chunks_[c].gradients;
      const int64_t bytes = stage_of(c) != s ? 0 : spread ? gradients.spread : gradients.all - gradients.spread;
      if (bytes > 0 && (sum == 0 || sum + bytes <= given_.bucket_bytes)) start = completed[c];
      sum += bytes;
    }
    return start;
  }

  /// End of the messages that follow the last backward pass.
  double end_of_messages(int32_t s, const MessageTime& all) const {
    const double others = first_bucket(s, false), experts = first_bucket(s, true);
    const double apart = std::max(others + all.others_ns, experts + all.experts_ns);
    return messages_->serial(s) ? std::max(apart, std::min(others, experts) + all.others_ns + all.experts_ns) : apart;
  }

  /// End of a stage's work: updates, and remaining messages.
  double end_of(int32_t s) {
    auto& stage = stages_[s];
    double update = 0, spread_update = 0, host = 0, spread_host = 0;
    Chunk all;  // of all virtual stages of the device, as far as messages go
    for (int32_t c = 0; c < chunks(); ++c) {
      const auto& chunk = chunks_[c];
      if (stage_of(c) != s) continue;
      update += chunk.update_ns - chunk.spread_update_ns;
      spread_update += chunk.spread_update_ns;
      host += chunk.host_update_ns - chunk.spread_host_update_ns;
      spread_host += chunk.spread_host_update_ns;
      add(all.gradients, chunk.gradients);
      add(all.trained, chunk.trained);
      add(all.gathered, chunk.gathered);
      widen(all.largest_gradient, chunk.largest_gradient);
      widen(all.largest_trained, chunk.largest_trained);
      widen(all.layer, chunk.layer);
    }
    if (given_.zero_stage < 1 && given_.mesh.data == 1) stage.most = std::max(stage.most, stage.fixed + stage.summed);
    if (given_.zero_stage > 0) {
      update /= shard_group(given_);
      spread_update /= static_cast<double>(copies());
      host /= shard_group(given_);
      spread_host /= static_cast<double>(copies());
    }
    update += spread_update;
    if (const double offloaded = given_.optimizer_offload_fraction; offloaded > 0)
      update = std::max((1 - offloaded) * update, offloaded * (host + spread_host));
    return messages_ ? end_with_messages(s, update, all) : stage.free + update;
  }

  double end_with_messages(int32_t s, double update, const Chunk& all) const {
    const auto& stage = stages_[s];
    const double end = stage.free;
    const auto time = [&](CollectiveKind kind, const SpreadBytes& bytes, const SpreadBytes& most) {
      return messages_->time(s, kind, given_.sync.algorithm, bytes, most);
    };
    const auto in_buckets = [&](CollectiveKind kind, const SpreadBytes& bytes, const SpreadBytes& largest) {
      const int64_t bucket = given_.bucket_bytes;
      return time(kind, bytes, {std::max(bucket, largest.all), std::max(bucket, largest.spread)});
    };
    if (given_.zero_stage == 0) {
      const auto reduce = in_buckets(CollectiveKind::all_reduce, all.gradients, all.largest_gradient);
      return std::max(end + update, end_of_messages(s, reduce));
    }
    const auto scatter = in_buckets(CollectiveKind::reduce_scatter, all.gradients, all.largest_gradient);
    if (given_.zero_stage == 3) {
      const auto gather = time(CollectiveKind::all_gather, all.gathered, all.layer);
      return std::max(end + update, m_ * messages_->span(s, scatter + gather + gather));
    }
    const auto gather = in_buckets(CollectiveKind::all_gather, all.trained, all.largest_trained);
    const double after = end + std::max(update, messages_->span(s, gather));
    if (given_.zero_stage == 1) return std::max(after, end_of_messages(s, scatter + gather));
    return std::max(after, stage.first_gradient + m_ * messages_->span(s, scatter) + messages_->span(s, gather));
  }

  const Problem& problem_;
  const Parallelism& given_;
  PipelineSchedule schedule_;
  int32_t p_, v_, m_;
  int64_t framework_bytes_;
  bool keeps_;  // gradients are resident
  int64_t tasks_ = 0;
  size_t own_units_ = 0;              // of the problem's network
  std::shared_ptr<const Units> own_;  // of the latest stage
  std::span<const std::vector<ChunkTask>> orders_;
  std::vector<Chunk> chunks_;
  std::vector<double> wire_[2];   // forward, backward; per boundary
  const ReplicaMessages* messages_ = nullptr;  // null: none that count
  std::vector<Stage> stages_;
  std::vector<double> there_[2];  // [micro-batch]: when a virtual stage's output has arrived
  std::vector<uint8_t> done_[2];  // whether that is known
};

MeshBounder::MeshBounder(std::shared_ptr<const Problem> problem, ThreadPool& pool)
    : problem_(std::move(problem)), pool_(pool), scratch_(at(pool.threads())) {}
MeshBounder::~MeshBounder() = default;

MeshBounder::OrderKey MeshBounder::order_key(const Parallelism& given) {
  return {schedule_of(given), given.mesh.pipeline, given.virtual_stages, given.micro_batches};
}

MeshBounder::Scratch& MeshBounder::scratch_of(int thread) {
  auto& scratch = scratch_[at(thread)];
  if (!scratch) scratch = std::make_unique<Scratch>(problem_->cluster());
  return *scratch;
}

void MeshBounder::make_profiles(std::span<const Parallelism> parts) {
  std::vector<std::pair<const Parallelism*, Profile*>> missing;
  for (const auto& part : parts) {
    auto [found, added] = profiles_.try_emplace(part);
    if (!added) continue;
    found->second = std::make_unique<Profile>();
    missing.emplace_back(&found->first, found->second.get());
  }
  try {
    pool_.parallel_for(static_cast<int>(missing.size()), [&](int i, int) {
      missing[at(i)].second->make(*missing[at(i)].first, *problem_);
    });
  } catch (...) {
    for (const auto& [part, profile] : missing) profiles_.erase(Parallelism(*part));
    throw;
  }
}

std::shared_ptr<const Units> MeshBounder::units_at(const Problem& problem, Profile& profile,
                                                   const Mesh& mesh, int32_t stage,
                                                   CollectiveGroups& all_groups) {
  if (!profile.profiler) throw ArgumentError(profile.refused);
  std::vector<int32_t> devices, ranks;
  for (int32_t part = 0; part < mesh.width(); ++part)
    devices.push_back(mesh.device(stage, 0, part));
  for (int32_t rank = 0; rank < mesh.expert; ++rank) ranks.push_back(mesh.device(stage, rank, 0));
  const auto& device = problem.cluster().device(devices[0]);
  const Profile::On on{device.type, device.speed, profile.profiler->groups_of(devices, ranks, all_groups)};
  return profile.units.find(
      on, [&] { return std::make_shared<const Units>(profile.profiler->run(device, std::get<2>(on))); });
}

std::vector<UnitProfile> MeshBounder::units(const Parallelism& given, int32_t stage,
                                            int32_t layers) {
  check_mesh(given, problem_->cluster());
  const std::lock_guard lock(mutex_);
  const auto part = UnitProfiler::part_of(given);
  make_profiles(std::span(&part, 1));
  return *stretched(
      units_at(*problem_, *profiles_.at(part), given.mesh, stage, scratch_of(0).groups), layers);
}

/// Reason for a refusal that needs no profile; empty: none.
std::string MeshBounder::refusal(const Parallelism& given) const {
  try {
    check_mesh(given, problem_->cluster());
    check_inside(given, problem_->graph());
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return {};
}

MeshBound MeshBounder::bound(const Parallelism& given, int32_t layers, Scratch& scratch) const {
  MeshBound bound;
  try {
    for (int32_t place = 0; place < given.mesh.placement; ++place) {
      Parallelism other;
      if (place > 0) other = turned(given, place);
      const auto& one = place > 0 ? other : given;
      auto& profile = *profiles_.at(UnitProfiler::part_of(one));
      raise(bound, Bounding(*problem_, profile, one, layers, scratch).run());
    }
  } catch (const ArgumentError& error) {
    bound.refused = error.what();
  }
  return bound;
}

std::vector<MeshBound> MeshBounder::run(std::span<const Parallelism> given, int32_t layers) {
  const std::lock_guard lock(mutex_);
  std::vector<MeshBound> bounds(given.size());
  std::vector<Parallelism> parts;
  std::vector<std::pair<OrderKey, int>> fine;
  for (size_t i = 0; i < given.size(); ++i) {
    bounds[i].refused = refusal(given[i]);
    if (!bounds[i].refused.empty()) continue;
    fine.emplace_back(order_key(given[i]), static_cast<int>(i));
    for (int32_t place = 0; place < given[i].mesh.placement; ++place)
      parts.push_back(UnitProfiler::part_of(place == 0 ? given[i] : turned(given[i], place)));
  }
  make_profiles(parts);
  std::sort(fine.begin(), fine.end());  // so that equal orders are made once
  pool_.parallel_for(static_cast<int>(fine.size()), [&](int item, int thread) {
    const int i = fine[at(item)].second;
    bounds[at(i)] = bound(given[at(i)], layers, scratch_of(thread));
  });
  return bounds;
}

}  // namespace trinity
