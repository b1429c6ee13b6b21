#include "execute/executor.h"

#include <algorithm>
#include <barrier>
#include <mutex>
#include <set>

#include "base/stop.h"
#include "distribute/job.h"
#include "execute/checkpoint.h"
#include "execute/kernels/collectives.h"
#include "execute/evaluation.h"
#include "execute/feed.h"
#include "execute/memory.h"
#include "execute/operators.h"
#include "execute/peer_transport.h"
#include "execute/sent_weights.h"
#include "execute/task_completions.h"
#include "execute/team.h"
#include "execute/tensor_store.h"
#include "execute/worker.h"
#include "libtorch/setup.h"

namespace trinity {
struct Executor::Impl {
  Impl(std::shared_ptr<const Graph> given, std::span<const int32_t> placement, int32_t devices,
       std::span<const double> order, const ExecutorOptions& chosen)
      : graph(given),
        program(std::move(given)),
        options(chosen),
        layout(*graph, placement, devices, chosen.micro_batches, order, chosen.stream),
        real(chosen.double_precision ? at::kDouble : at::kFloat),
        feed(make_feed()),
        operators(program, {chosen.seed, chosen.micro_batches, real, data_source(), chosen.stream}),
        sums(graph->tensors().size()),
        values(layout),
        late(layout.slots().size()),
        workers(make_workers(devices, chosen)),
        completions(layout.tasks(), have_cores()),
        runs(static_cast<size_t>(layout.tasks())) {
    operators.learning_rate = chosen.learning_rate;
    if (options.job) join_job();
    for (auto& worker : workers) {
      cores.push_back(worker.core);
      if (is_here(worker.device)) make_weights(worker);
    }
    if (feed) reader = std::make_unique<ReadAhead>([this] { read_ahead(); });
  }

  void join_job() {
    transport = std::make_unique<PeerTransport>(layout, *graph, options.job);
    operators.weights().share_by([this](int32_t op, const at::Tensor& bundle) {
      options.job->wait(
          *options.job->begin_broadcast(bundle, Scope::world, layout.device_of(op)));
    });
  }

  std::unique_ptr<Feed> make_feed() const {
    if (!options.data) return nullptr;
    return std::make_unique<Feed>(options.data, program.graph(), options.seed,
                                  int64_t{options.micro_batches} * program.replicas());
  }

  DataSource data_source() const {
    if (!feed) return {};
    return [this](const Operator& input, const Tensor& whole, int64_t batch,
                  const at::Tensor& spare) { return feed->take(input, whole, batch, spare); };
  }

  /// True if a device's worker is a thread of this process.
  bool is_here(int32_t device) const {
    return !options.job || device == options.job->rank();
  }

  /// True if no two workers of this process share a core.
  bool have_cores() const {
    std::set<int32_t> taken;
    for (const auto& worker : workers)
      if (is_here(worker.device) && !worker.on.cuda && !taken.insert(worker.core).second)
        return false;
    return true;
  }

  void make_weights(const Worker& worker) {
    const AccountScope scope(worker.memory);
    worker.memory->open();
    for (const int32_t task : layout.queue(worker.device)) {
      const int32_t op = layout.operator_of(task);
      if (layout.micro_batch_of(task) + 1 != layout.micro_batches()) continue;
      try {
        operators.make_weights(op, worker.torch_device());
      } catch (const Interrupted&) {
        throw;
      } catch (const std::exception& error) {
        throw Error(describe(worker, task, error));
      }
    }
    worker.memory->close();
  }

  std::string describe(const Worker& worker, int32_t task, const std::exception& error) const {
    const std::string text = error.what();
    const auto& op = graph->op(layout.operator_of(task));
    return fmt::format("execute: operator {} ({}) on {}: {}", op.name, op.type.text(),
                       worker.on.name,
                       text.substr(0, text.find('\n')));
  }

  /// A tensor on the reader's device: itself, or a copy made by the first reader there.
  at::Tensor fetch(Worker& worker, int32_t tensor, int32_t micro_batch) {
    const int32_t home = layout.home_slot(tensor), producer = graph->tensor(tensor).producer;
    if (layout.device_of(producer) == worker.device) return values.read(home, micro_batch);
    const int32_t slot = layout.slot(tensor, worker.device);
    if (values.read(slot, micro_batch).defined()) return values.read(slot, micro_batch);
    CopyRun copy;
    copy.task = layout.task(micro_batch, producer);
    copy.from = layout.device_of(producer);
    copy.to = worker.device;
    at::Tensor made;
    if (transport) {
      copy.start_s = clock.seconds();
      made = transport->receive(slot, micro_batch).to(worker.torch_device());
    } else {
      wait_for(tensor, micro_batch);
      copy.start_s = clock.seconds();
      const at::Tensor source = needed_at(slot, values.read(home, micro_batch));
      made = source.to(worker.torch_device(), source.scalar_type(), false, true);
      values.release(home, micro_batch);
    }
    copy.end_s = clock.seconds();
    copy.bytes = static_cast<int64_t>(made.nbytes());
    const auto& outputs = graph->op(producer).outputs;
    copy.output =
        static_cast<int32_t>(std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin());
    worker.copies.push_back(copy);
    values.keep(slot, micro_batch, made);
    return made;
  }

  /// The part of a tensor that a member of a collective needs.
  at::Tensor needed_by(int32_t op, int32_t tensor, const at::Tensor& given) const {
    const auto& of = graph->op(op);
    if (of.collective < 0 || !needs_part(of)) return given;
    const auto& members = graph->collectives()[of.collective].members;
    const auto& reads = layout.reads(op);
    const auto number = static_cast<size_t>(
        std::find(reads.begin(), reads.end(), tensor) - reads.begin());
    if (number >= members.size() * of.outputs.size()) return given;
    const auto place = static_cast<size_t>(
        std::find(members.begin(), members.end(), op) - members.begin());
    return needed_of(of, place, members.size(), given,
                     graph->tensor(of.outputs[number / members.size()]).shape);
  }

  /// The part of a tensor that a copy holds.
  at::Tensor needed_at(int32_t slot, const at::Tensor& whole) const {
    const auto& of = layout.slots()[slot];
    return of.reader < 0 ? whole : needed_by(of.reader, of.tensor, whole);
  }

  /// A tensor as an operator reads it: a copy made for it alone has no more than the needed part.
  at::Tensor taken(Worker& worker, int32_t op, int32_t tensor, int32_t micro_batch) {
    auto made = fetch(worker, tensor, micro_batch);
    const int32_t slot = layout.slot(tensor, worker.device);
    const bool is_part = slot != layout.home_slot(tensor) && layout.slots()[slot].reader == op;
    return is_part ? made : needed_by(op, tensor, made);
  }

  /// Between processes the members of a weight gather exchange their shards.
  void exchange_shares(int32_t op, int32_t micro_batch) {
    const auto& members = graph->collectives()[graph->op(op).collective].members;
    std::vector<at::Tensor> sent(members.size());
    size_t own = 0;
    while (members[own] != op) ++own;
    const auto shares = operators.shares_of(op, own);
    for (const int32_t member : members)
      if (member != op) transport->send_shares(member, micro_batch, shares);
    for (size_t i = 0; i < members.size(); ++i)
      if (i != own)
        sent[i] = transport->receive_shares(op, micro_batch, layout.device_of(members[i]),
                                            operators.share_elements(op, i), real);
    operators.set_sent_shares(op, std::move(sent));
  }

  bool adds_up(int32_t tensor) const { return !layout.is_stream() && program.adds_up(tensor); }

  /// Waits for a tensor; if it accumulates, for all micro-batches.
  void wait_for(int32_t tensor, int32_t micro_batch) const {
    const int32_t producer = graph->tensor(tensor).producer;
    const int32_t first = adds_up(tensor) ? 0 : micro_batch;
    for (int32_t m = first; m <= micro_batch; ++m) completions.wait_for(layout.task(m, producer));
  }

  /// Gradients that are read once per step accumulate in order of arrival. The first may also be
  /// another operator's value, so the first sum is not in place.
  void add_up(int32_t tensor, const at::Tensor& made) {
    const at::NoGradGuard guard;
    auto& [sum, count] = sums[tensor];
    if (count == 0)
      sum = made;
    else
      sum = count == 1 ? sum + made : sum.add_(made);
    if (++count < layout.micro_batches()) return;
    keep(tensor, layout.micro_batches() - 1, std::exchange(sum, {}));
    count = 0;
  }

  void keep(int32_t tensor, int32_t micro_batch, const at::Tensor& made) {
    const bool idle = operators.is_idle(tensor);
    if (idle && !operators.is_handed_on(tensor)) return;
    const int32_t home = layout.home_slot(tensor);
    values.keep(home, micro_batch, made);
    if (!transport || idle) return;
    for (int32_t slot = home + 1; slot < layout.end_slot(tensor); ++slot) {
      transport->send(slot, micro_batch, needed_at(slot, made));
      values.release(home, micro_batch);
    }
  }

  /// Handles an operator that does not run in this step: passes its inputs on.
  void pass_over(int32_t task) {
    const int32_t op = layout.operator_of(task), micro_batch = layout.micro_batch_of(task);
    const auto own = [&](int32_t tensor) {
      return values.read(layout.home_slot(tensor), micro_batch);
    };
    const auto outputs = operators.handed_on(op, own);
    for (size_t i = 0; i < outputs.size(); ++i)
      keep(graph->op(op).outputs[i], micro_batch, outputs[i]);
    completions.finish(task);
  }

  /// Keeps sent weights for merges of this step or a later one.
  void keep_sent(int32_t tensor, const at::Tensor& made) {
    const int32_t home = layout.home_slot(tensor);
    late.keep(home, operators.steps, made);
    for (int32_t slot = home + 1; transport && slot < layout.end_slot(tensor); ++slot)
      transport->post(slot, made);
  }

  /// Starts receiving what the other members of a merge send in this step.
  void expect(int32_t op) {
    const int32_t device = layout.device_of(op);
    for (size_t k = 0; k < graph->op(op).inputs.size(); ++k) {
      const int32_t own = graph->op(op).inputs[k];
      if (!operators.runs(graph->tensor(own).producer)) return;
      const size_t members = layout.reads(op).size() / graph->op(op).inputs.size();
      for (size_t i = 0; i < members; ++i) {
        const int32_t tensor = layout.reads(op)[k * members + i];
        const int32_t slot = layout.slot(tensor, device);
        if (slot == layout.home_slot(tensor)) continue;
        const auto made = at::empty_like(late.last(layout.home_slot(own)));
        late.keep(slot, operators.steps, made, transport->expect(slot, made));
      }
    }
  }

  /// Input of a merge: weights sent `age` steps ago.
  at::Tensor sent_to(Worker& worker, int32_t op, int32_t tensor) {
    const int32_t home = layout.home_slot(tensor), slot = layout.slot(tensor, worker.device);
    const int32_t producer = graph->tensor(tensor).producer;
    const int32_t last = layout.micro_batches() - 1;
    if (!transport || slot == home) completions.wait_for(layout.task(last, producer));
    auto* found = late.find(transport ? slot : home, operators.steps - operators.occasion(op)->age);
    if (!found)
      throw Error("expected weights sent {} steps ago, but none were sent", operators.occasion(op)->age);
    if (slot == home) return found->tensor;
    CopyRun copy;
    copy.task = layout.task(last, producer);
    copy.from = layout.device_of(producer);
    copy.to = worker.device;
    copy.start_s = clock.seconds();
    at::Tensor made = found->tensor;
    if (found->message)
      transport->wait(std::exchange(found->message, {}), copy.from);
    else if (!transport)
      made = made.to(worker.torch_device(), made.scalar_type(), false, true);
    copy.end_s = clock.seconds();
    copy.bytes = static_cast<int64_t>(made.nbytes());
    worker.copies.push_back(copy);
    return made;
  }

  /// Between steps: drops weights that nobody will merge any more, once they have arrived.
  void drop_sent() {
    for (int32_t op = 0; op < graph->operator_count(); ++op) {
      if (!program.merges(op) || !operators.runs(op) || !is_here(layout.device_of(op))) continue;
      const int64_t until = operators.steps - operators.occasion(op)->age;
      for (const int32_t tensor : layout.reads(op)) {
        const int32_t home = layout.home_slot(tensor);
        const int32_t slot = transport ? layout.slot(tensor, layout.device_of(op)) : home;
        for (const auto& old : late.drop(slot, until))
          if (old.message)
            transport->wait(old.message, layout.device_of(graph->tensor(tensor).producer));
      }
    }
  }

  void run(Worker& worker, const DeviceScope& device, int32_t task) {
    commit.poll();
    const int32_t op = layout.operator_of(task), micro_batch = layout.micro_batch_of(task);
    const auto& of = graph->op(op);
    if (transport && program.merges(op)) expect(op);
    if (!operators.runs(op)) return pass_over(task);
    std::vector<at::Tensor> inputs;
    for (const int32_t input : layout.reads(op))
      inputs.push_back(program.merges(op) ? sent_to(worker, op, input)
                                          : taken(worker, op, input, micro_batch));
    if (transport && program.duty(op) == Duty::gather && of.phase != Phase::update)
      exchange_shares(op, micro_batch);
    if (program.duty(op) == Duty::update) commit.change();
    TaskRun& times = runs[task];
    times.start_s = clock.seconds();
    auto outputs = operators.run(op, micro_batch, std::move(inputs));
    if (worker.on.cuda)  // some kernels without inputs fill CPU memory
      for (auto& output : outputs) output = output.to(worker.torch_device());
    device.sync();
    times.end_s = clock.seconds();
    while (outputs.size() < of.outputs.size() &&
           graph->tensor(of.outputs[outputs.size()]).bytes == 0)
      outputs.push_back(at::empty({0}));  // marks it as run
    worker.loss += operators.loss(op, micro_batch, outputs);
    for (size_t i = 0; i < of.outputs.size(); ++i) {
      if (program.duty(op) == Duty::send)
        keep_sent(of.outputs[i], outputs.at(i));
      else if (adds_up(of.outputs[i]))
        add_up(of.outputs[i], outputs.at(i));
      else
        keep(of.outputs[i], micro_batch, outputs.at(i));
    }
    outputs.clear();
    for (const int32_t input : layout.reads(op))
      if (!program.merges(op)) values.release(layout.slot(input, worker.device), micro_batch);
    times.memory_bytes = worker.memory->current_bytes();
    completions.finish(task);
  }

  void prepare(Worker& worker) {
    bind_to_core(worker.core);
    use_one_torch_thread();
    worker.loss = 0;
    worker.copies.clear();
    for (const int32_t task : layout.queue(worker.device))
      if (program.is_input(layout.operator_of(task)))
        operators.make_data(layout.operator_of(task), layout.micro_batch_of(task),
                            worker.torch_device());
  }

  /// Prefetches the inputs of the next step. Failures are repeated, and reported, when the data is
  /// needed.
  void read_ahead() noexcept {
    try {
      for (const auto& worker : workers)
        for (const int32_t task : layout.queue(worker.device))
          if (is_here(worker.device) && program.is_input(layout.operator_of(task)))
            operators.read_ahead(layout.operator_of(task), layout.micro_batch_of(task), next_step);
    } catch (const std::exception&) {
    }
  }

  /// One device's part of a step; all begin when every device has its data.
  template <class Barrier>
  void duty(Worker& worker, Barrier& begin) {
    int32_t task = layout.queue(worker.device)[0];
    bool has_begun = false;
    try {
      const AccountScope scope(worker.memory);
      const DeviceScope device(worker.on);
      prepare(worker);
      has_begun = true;
      begin.arrive_and_wait();
      if (transport && !failed) meet();
      worker.memory->restart_peak();
      for (const int32_t next : layout.queue(worker.device)) {
        if (failed) return;
        run(worker, device, task = next);
      }
      if (transport) transport->flush();
    } catch (...) {
      fail(worker, task);
    }
    if (!has_begun) begin.arrive_and_drop();
  }

  void meet() {  // all processes begin a step together
    options.job->barrier();
    clock.restart();
  }

  void fail(const Worker& worker, int32_t task) {
    {
      const std::lock_guard lock(mutex);
      if (failed) return;
      failed = true;
      try {
        throw;
      } catch (const Interrupted&) {
        failure = std::current_exception();
      } catch (const std::exception& error) {
        failure = std::make_exception_ptr(Error(describe(worker, task, error)));
      }
    }
    completions.fail();
  }

  /// Runs every device with operators in a thread of its own, until all have ended. A worker that
  /// waits for another process cannot poll for Ctrl-C.
  void run_workers() {
    std::vector<Worker*> active;
    for (auto& worker : workers)
      if (is_here(worker.device) && !layout.queue(worker.device).empty()) active.push_back(&worker);
    const auto on_begin = [this]() noexcept {
      if (reader) reader->begin();
      clock.restart();
    };
    std::barrier begin(static_cast<std::ptrdiff_t>(std::max<size_t>(1, active.size())), on_begin);
    try {
      team.grow(active.size());
    } catch (...) {
      failed = true;
      throw;
    }
    if (active.empty() && transport) meet();
    const auto look = [this] { if (stop_flag()) transport->abort(); };
    team.run(active.size(), [&](size_t i) { duty(*active[i], begin); },
             transport ? std::function<void()>(look) : nullptr);
  }

  ExecutedStep step(const std::vector<Occasion>& occasions) {
    if (failed) throw Error("execute: an earlier step failed; create a new executor");
    const double read_s = reader ? reader->wait() : 0;
    operators.set_occasions(occasions);
    next_step = operators.steps + 1;
    completions.clear();
    commit.begin();
    for (auto& worker : workers) worker.memory->open();
    values.clear();
    std::fill(runs.begin(), runs.end(), TaskRun());
    for (auto& sum : sums) sum = {};
    run_workers();
    if (failure) std::rethrow_exception(failure);
    if (!occasions.empty()) drop_sent();
    ++operators.steps;
    operators.weights().updates += updates_of_step();
    ExecutedStep result = report();
    result.read_s = read_s;
    for (auto& worker : workers) worker.memory->close();
    if (transport) join_reports(*options.job, result);
    return result;
  }

  int64_t updates_of_step() const { return layout.is_stream() ? layout.micro_batches() : 1; }

  ExecutedStep report() const {
    ExecutedStep result;
    result.tasks = runs;
    for (const auto& run : runs) result.step_time_s = std::max(result.step_time_s, run.end_s);
    for (const auto& worker : workers) {
      if (!is_here(worker.device)) {
        result.busy_s.push_back(0);
        result.peak_memory_bytes.push_back(0);
        continue;
      }
      double busy = 0;
      for (const int32_t task : layout.queue(worker.device))
        busy += runs[task].end_s - runs[task].start_s;
      result.busy_s.push_back(busy);
      result.peak_memory_bytes.push_back(worker.memory->peak_bytes());
      result.loss += worker.loss / layout.micro_batches() / program.replicas();
      result.copies.insert(result.copies.end(), worker.copies.begin(), worker.copies.end());
      for (const auto& copy : worker.copies) result.transferred_bytes += copy.bytes;
    }
    return result;
  }

  std::shared_ptr<const Graph> graph;
  Program program;
  ExecutorOptions options;
  RunLayout layout;
  at::ScalarType real;
  std::unique_ptr<Feed> feed;
  Operators operators;
  // per accumulating tensor: sum, number of terms
  std::vector<std::pair<at::Tensor, int32_t>> sums;
  TensorStore values;
  SentWeights late;
  std::vector<Worker> workers;
  TaskCompletions completions;
  StepCommit commit;
  std::vector<TaskRun> runs;
  std::vector<int32_t> cores;
  std::unique_ptr<PeerTransport> transport;
  Team team;
  Clock clock;
  std::mutex mutex;
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  int64_t next_step = 0;              // number of the prefetched step
  std::unique_ptr<ReadAhead> reader;  // last: it ends before the data it reads
};

Executor::Executor(std::shared_ptr<const Graph> graph, std::span<const int32_t> placement,
                   int32_t devices, std::span<const double> order, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(std::move(graph), placement, devices, order, options)) {}
Executor::~Executor() = default;

ExecutedStep Executor::step(const std::vector<Occasion>& occasions) {
  return impl_->step(occasions);
}
void Executor::set_learning_rate(double rate) { impl_->operators.learning_rate = rate; }
WrittenOut Executor::written_out() const { return write_out(*impl_->graph, impl_->layout); }
const std::vector<int32_t>& Executor::cores() const { return impl_->cores; }

std::vector<double> Executor::data(int32_t op, int32_t micro_batch) const {
  if (op < 0 || op >= impl_->graph->operator_count() || !impl_->program.is_input(op))
    throw ArgumentError("execute: operator {} is not an input", op + 1);
  if (micro_batch < 0 || micro_batch >= impl_->layout.micro_batches())
    throw ArgumentError("execute: expected a micro-batch from 1 to {}, got {}", impl_->layout.micro_batches(),
                        micro_batch + 1);
  const auto flat = impl_->operators.data(op, micro_batch).to(at::kDouble).reshape({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

namespace {

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const auto flat = tensor.detach().to(at::kCPU, at::kDouble).contiguous().reshape({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

Executor::Epoch Executor::epoch() const {
  if (!impl_->feed) return {};
  const auto& feed = *impl_->feed;
  return {feed.steps_per_epoch(), feed.held_out_samples(), feed.samples_per_step()};
}

HeldOut Executor::evaluate(std::shared_ptr<const Graph> graph) const {
  if (!impl_->feed) throw ArgumentError("execute: evaluate: expected an executor with data, got "
                                        "none");
  const Program program(std::move(graph));
  return trinity::evaluate(program, impl_->operators.weights().named(false), *impl_->feed, impl_->real);
}

void Executor::save(const std::string& path, bool checkpoint,
                    const std::map<std::string, double>& numbers) const {
  auto values = impl_->operators.weights().named(checkpoint);
  const auto& job = impl_->options.job;
  if (checkpoint)
    name_sent(impl_->late, impl_->program, impl_->layout, impl_->real, job.get(), values);
  if (!job || job->rank() == 0) write_weights(path, values, impl_->operators.steps, numbers);
  if (job) job->barrier();
}

Executor::Course Executor::load(const std::string& path, bool checkpoint) {
  const auto read = read_weights(path, checkpoint);
  impl_->operators.weights().set_named(read.values, checkpoint);
  if (!checkpoint) return {};
  set_sent(read.values, impl_->late, impl_->program, impl_->layout, impl_->options.job.get());
  impl_->operators.steps = read.steps;
  impl_->operators.weights().updates = read.steps * impl_->updates_of_step();
  return {read.steps, read.course};
}

std::vector<NamedValues> Executor::weights() const {
  std::vector<NamedValues> all;
  for (const auto& [name, values] : impl_->operators.weights().named(false))
    all.push_back({name, values.sizes().vec(), numbers_of(values)});
  return all;
}

std::vector<double> Executor::weight(int32_t op, size_t parameter) const {
  const bool is_there = op >= 0 && op < impl_->graph->operator_count() &&
                        parameter < impl_->operators.weights().of(op).size();
  if (!is_there)
    throw ArgumentError("execute: operator {} has no weight {}", op + 1, parameter + 1);
  return numbers_of(impl_->operators.weights().of(op)[parameter]);
}

}  // namespace trinity
