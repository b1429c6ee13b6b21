#include "execute/executor.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

#include "base/hash.h"
#include "base/random.h"
#include "base/stop.h"
#include "execute/program.h"
#include "learn/agent.h"

namespace trinity {
namespace {

using Tensors = std::vector<at::Tensor>;

uint64_t key_of(uint64_t seed, const std::string& what, const std::string& name, int64_t index) {
  return RandomStream(
             Hasher().add(seed).add(what).add(name).add(static_cast<uint64_t>(index)).value())
             .next() >>
         1;
}

/// Weights as networks usually start: scales of 1, biases of 0, else normal numbers whose variance
/// is one over what an output sums up.
at::Tensor first_weight(const Parameter& parameter, uint64_t seed, const std::string& op) {
  const auto& shape = parameter.shape;
  if (parameter.name == "scale" || parameter.name == "variance") return at::ones(shape);
  if (shape.size() <= 1) return at::zeros(shape);
  const double fan_in = static_cast<double>(parameter.elements()) / static_cast<double>(shape[0]);
  auto random =
      at::detail::createCPUGenerator(key_of(seed, "weight", op + "/" + parameter.name, 0));
  return at::randn(shape, random) / std::sqrt(std::max(1.0, fan_in));
}

/// Seconds since a step began.
class Clock {
 public:
  void restart() { begin_ = std::chrono::steady_clock::now(); }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_;
};

/// A tensor on a device, until its last reader has run.
struct Value {
  at::Tensor tensor;
  std::atomic<int32_t> readers{0};
};

/// What autograd needs of a forward run.
struct Saved {
  Tensors inputs;  ///< those that want gradients, as leaves
  Tensors outputs;
};

}  // namespace

struct Executor::Impl {
  Impl(std::shared_ptr<const Graph> given, std::span<const int32_t> placed, int32_t count,
       std::span<const double> order, const ExecutorOptions& chosen)
      : graph(given),
        program(std::move(given)),
        placement(placed.begin(), placed.end()),
        devices(count),
        options(chosen),
        values(static_cast<size_t>(count) * graph->tensors().size()),
        done(static_cast<size_t>(graph->operator_count())),
        queues(static_cast<size_t>(count)),
        current(static_cast<size_t>(count)),
        peak(static_cast<size_t>(count)) {
    check(order);
    make_queues(order);
    make_weights();
  }

  void check(std::span<const double> order) const {
    const auto count = static_cast<size_t>(graph->operator_count());
    if (placement.size() != count || (!order.empty() && order.size() != count))
      throw ArgumentError(fmt::format("execute: expected a device for each of {} operators, got {}",
                                      count, placement.size()));
    for (int32_t op = 0; op < graph->operator_count(); ++op) {
      const int32_t device = device_of(op), first = graph->unit(graph->op(op).unit)[0];
      if (device < 0 || device >= devices)
        throw ArgumentError(fmt::format("execute: operator {} is on device {}, expected 1 to {}",
                                        graph->op(op).name, device + 1, devices));
      if (device != device_of(first))
        throw ArgumentError(fmt::format(
            "execute: operators {} and {} belong together and are on devices "
            "{} and {}",
            graph->op(first).name, graph->op(op).name, device_of(first) + 1, device + 1));
    }
  }

  void make_queues(std::span<const double> order) {
    std::vector<int32_t> all(static_cast<size_t>(graph->operator_count()));
    std::iota(all.begin(), all.end(), 0);
    if (!order.empty())
      std::stable_sort(all.begin(), all.end(), [&](int32_t a, int32_t b) {
        return order[static_cast<size_t>(a)] < order[static_cast<size_t>(b)];
      });
    for (const int32_t op : all) queues[static_cast<size_t>(device_of(op))].push_back(op);
    // A device's operators, in the order of those that they wait for: no two devices wait for each
    // other only if the whole order is one of the graph.
    std::vector<int32_t> place(all.size());
    for (size_t i = 0; i < all.size(); ++i)
      place[static_cast<size_t>(all[i])] = static_cast<int32_t>(i);
    for (const int32_t op : all)
      for (const int32_t input : graph->op(op).inputs)
        if (place[static_cast<size_t>(graph->tensor(input).producer)] >
            place[static_cast<size_t>(op)])
          throw ArgumentError(fmt::format("execute: operator {} comes before {} that it reads",
                                          graph->op(op).name,
                                          graph->op(graph->tensor(input).producer).name));
  }

  void make_weights() {
    for (const auto& op : graph->operators()) {
      auto& own = weights.emplace_back();
      for (const auto& parameter : op.parameters) {
        own.push_back(first_weight(parameter, options.seed, op.name));
        if (parameter.trainable) own.back().requires_grad_();
        current[static_cast<size_t>(placement[weights.size() - 1])] +=
            static_cast<int64_t>(own.back().nbytes());
      }
    }
    saved.resize(weights.size());
    weight_gradients.resize(weights.size());
    runs.resize(weights.size());
  }

  int32_t device_of(int32_t op) const { return placement[static_cast<size_t>(op)]; }
  Value& value(int32_t device, int32_t tensor) {
    return values[static_cast<size_t>(device) * graph->tensors().size() +
                  static_cast<size_t>(tensor)];
  }

  /// How often a tensor is read on a device; where it is made, a copy to another device counts too.
  void count_readers() {
    for (auto& entry : values) entry.readers = 0;
    for (int32_t op = 0; op < graph->operator_count(); ++op) {
      const int32_t device = device_of(op);
      for (const int32_t input : graph->op(op).inputs) {
        const int32_t home = device_of(graph->tensor(input).producer);
        if (value(device, input).readers++ == 0 && home != device) ++value(home, input).readers;
      }
    }
  }

  void keep(int32_t device, int32_t tensor, at::Tensor made) {
    Value& to = value(device, tensor);
    if (to.readers == 0) return;
    const auto now = current[static_cast<size_t>(device)] += static_cast<int64_t>(made.nbytes());
    auto& most = peak[static_cast<size_t>(device)];
    for (int64_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    to.tensor = std::move(made);
  }

  void release(int32_t device, int32_t tensor) {
    Value& from = value(device, tensor);
    if (--from.readers > 0) return;
    current[static_cast<size_t>(device)] -= static_cast<int64_t>(from.tensor.nbytes());
    from.tensor = at::Tensor();
  }

  void wait_for(int32_t op) {
    if (done[static_cast<size_t>(op)].load(std::memory_order_acquire)) return;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done[static_cast<size_t>(op)].load() || failed; });
    if (failed) throw Interrupted();
  }

  void finish(int32_t op) {
    {
      const std::lock_guard lock(mutex);
      done[static_cast<size_t>(op)].store(true, std::memory_order_release);
    }
    changed.notify_all();
  }

  /// A tensor on the device that reads it: as it is, or a copy made by the first reader there.
  at::Tensor fetch(int32_t device, int32_t tensor) {
    const int32_t producer = graph->tensor(tensor).producer, home = device_of(producer);
    wait_for(producer);
    if (home == device) return value(home, tensor).tensor;
    Value& local = value(device, tensor);
    if (!local.tensor.defined()) {
      keep(device, tensor, value(home, tensor).tensor.clone());
      transferred += static_cast<int64_t>(local.tensor.nbytes());
      release(home, tensor);
    }
    return local.tensor;
  }

  KernelCall call_of(int32_t op, Tensors inputs) const {
    const auto& of = graph->op(op);
    KernelCall call{of, std::move(inputs), weights[static_cast<size_t>(op)], {}, 0};
    if (!of.outputs.empty()) call.output_shape = graph->tensor(of.outputs[0]).shape;
    call.seed = key_of(options.seed, "operator", of.name, steps);
    return call;
  }

  Tensors data(int32_t op) const {
    Tensors outputs;
    for (const int32_t output : graph->op(op).outputs) {
      const auto& tensor = graph->tensor(output);
      auto random =
          at::detail::createCPUGenerator(key_of(options.seed, "data", graph->op(op).name,
                                                steps * 64 + static_cast<int64_t>(outputs.size())));
      const bool whole = tensor.dtype == DType::int64 || tensor.dtype == DType::int32;
      if (!whole) {
        outputs.push_back(at::randn(tensor.shape, random));
        continue;
      }
      const int64_t bound = std::min<int64_t>(program.index_bound(output), int64_t{1} << 31);
      outputs.push_back(at::randint(0, bound, tensor.shape, random, at::kLong));
    }
    return outputs;
  }

  /// A kernel's outputs in the shapes that the graph gives them (a split may leave dimensions of
  /// 1).
  Tensors compute(int32_t op, Tensors inputs) const {
    Tensors outputs = program.kernel(op)(call_of(op, std::move(inputs)));
    const auto& of = graph->op(op);
    for (size_t i = 0; i < outputs.size() && i < of.outputs.size(); ++i) {
      const auto& shape = graph->tensor(of.outputs[i]).shape;
      if (outputs[i].sizes() != at::IntArrayRef(shape)) outputs[i] = outputs[i].reshape(shape);
    }
    return outputs;
  }

  Tensors forward(int32_t op, Tensors inputs) {
    if (program.is_input(op)) return data(op);
    const int32_t backward = program.backward(op);
    if (backward < 0) {
      const at::NoGradGuard guard;
      return compute(op, std::move(inputs));
    }
    Saved& keeps = saved[static_cast<size_t>(op)];
    keeps = {};
    const auto& wanted = program.gradient(backward).inputs;
    for (const int32_t tensor : wanted) {
      at::Tensor leaf;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (graph->op(op).inputs[i] != tensor) continue;
        if (!leaf.defined()) leaf = inputs[i].detach().requires_grad_();
        inputs[i] = leaf;
      }
      keeps.inputs.push_back(leaf);
    }
    const at::AutoGradMode enable(true);
    keeps.outputs = compute(op, std::move(inputs));
    Tensors result;
    for (const auto& output : keeps.outputs) result.push_back(output.detach());
    return result;
  }

  Tensors backward(int32_t op, const Tensors& inputs) {
    if (program.is_sum(op)) return compute(op, inputs);
    const int32_t forward = graph->op(op).forward;
    const Gradient& gradient = program.gradient(op);
    Saved keeps = std::move(saved[static_cast<size_t>(forward)]);
    saved[static_cast<size_t>(forward)] = {};
    Tensors outputs, given, sources = keeps.inputs;
    for (size_t i = 0; i < gradient.outputs.size(); ++i) {
      outputs.push_back(keeps.outputs[static_cast<size_t>(gradient.outputs[i])]);
      given.push_back(inputs[i].reshape(outputs.back().sizes()));
    }
    if (outputs.empty()) {
      outputs.push_back(keeps.outputs[0]);
      given.push_back(at::ones_like(keeps.outputs[0]));
    }
    Tensors trained;
    for (const auto& weight : weights[static_cast<size_t>(forward)])
      if (weight.requires_grad()) trained.push_back(weight);
    sources.insert(sources.end(), trained.begin(), trained.end());
    auto found = torch::autograd::grad(outputs, sources, given, false, false, true);
    for (size_t i = 0; i < found.size(); ++i)
      if (!found[i].defined()) found[i] = at::zeros_like(sources[i]);
    const auto first_weight = found.begin() + static_cast<std::ptrdiff_t>(keeps.inputs.size());
    weight_gradients[static_cast<size_t>(forward)].assign(first_weight, found.end());
    found.resize(keeps.inputs.size());
    // The weights' gradients stay where the update is; this stands for them.
    if (gradient.weights) found.push_back(at::empty({0}));
    return found;
  }

  void update(int32_t op) {
    const at::NoGradGuard guard;
    const auto forward = static_cast<size_t>(graph->op(op).forward);
    size_t next = 0;
    for (auto& weight : weights[forward])
      if (weight.requires_grad())
        weight.sub_(weight_gradients[forward][next++], options.learning_rate);
    weight_gradients[forward].clear();
  }

  void run(int32_t device, int32_t op) {
    poll_stop();
    const auto& of = graph->op(op);
    Tensors inputs;
    for (const int32_t input : of.inputs) inputs.push_back(fetch(device, input));
    OperatorRun& times = runs[static_cast<size_t>(op)];
    times.start_s = clock.seconds();
    Tensors outputs;
    if (of.phase == Phase::update)
      update(op);
    else
      outputs = of.phase == Phase::forward ? forward(op, std::move(inputs)) : backward(op, inputs);
    times.end_s = clock.seconds();
    for (size_t i = 0; i < of.outputs.size(); ++i) keep(device, of.outputs[i], outputs.at(i));
    if (program.backward(op) >= 0 && program.gradient(program.backward(op)).outputs.empty())
      losses[static_cast<size_t>(device)] += outputs[0].sum().item<double>();
    for (const int32_t input : of.inputs) release(device, input);
    finish(op);
  }

  /// One device's part of a step.
  void work(int32_t device) {
    int32_t op = -1;
    try {
      use_one_torch_thread();
      for (const int32_t next : queues[static_cast<size_t>(device)]) run(device, op = next);
    } catch (...) {
      fail(op);
    }
  }

  void fail(int32_t op) {
    const std::lock_guard lock(mutex);
    if (!failed) {
      failed = true;
      try {
        throw;
      } catch (const Interrupted&) {
        failure = std::current_exception();
      } catch (const std::exception& error) {
        const std::string text = error.what();
        failure = std::make_exception_ptr(
            Error(fmt::format("execute: operator {} ({}): {}", graph->op(op).name,
                              graph->op(op).type, text.substr(0, text.find('\n')))));
      }
    }
    changed.notify_all();
  }

  /// Every device that has operators in a thread of its own, until all have ended.
  void run_workers() {
    std::vector<std::thread> threads;
    try {
      for (int32_t d = 0; d < devices; ++d)
        if (!queues[static_cast<size_t>(d)].empty()) threads.emplace_back([this, d] { work(d); });
    } catch (const std::system_error& error) {
      const std::lock_guard lock(mutex);
      failed = true;
      failure = std::make_exception_ptr(Error(
          fmt::format("execute: no thread for worker {}: {}", threads.size() + 1, error.what())));
      changed.notify_all();
    }
    for (auto& thread : threads) thread.join();
  }

  ExecutedStep step() {
    if (failed) throw Error("execute: an earlier step failed; a new executor is needed");
    for (auto& flag : done) flag = false;
    count_readers();
    for (size_t d = 0; d < peak.size(); ++d) peak[d] = current[d].load();
    losses.assign(static_cast<size_t>(devices), 0);
    transferred = 0;
    clock.restart();
    run_workers();
    if (failure) std::rethrow_exception(failure);
    ++steps;
    return report(clock.seconds());
  }

  ExecutedStep report(double seconds) const {
    ExecutedStep result;
    result.step_time_s = seconds;
    result.loss = std::accumulate(losses.begin(), losses.end(), 0.0);
    result.operators = runs;
    result.transferred_bytes = transferred;
    result.busy_s.assign(static_cast<size_t>(devices), 0);
    for (size_t op = 0; op < runs.size(); ++op)
      result.busy_s[static_cast<size_t>(placement[op])] += runs[op].end_s - runs[op].start_s;
    for (const auto& bytes : peak) result.peak_memory_bytes.push_back(bytes);
    return result;
  }

  std::shared_ptr<const Graph> graph;
  Program program;
  std::vector<int32_t> placement;
  int32_t devices;
  ExecutorOptions options;
  std::vector<Value> values;  // [devices, tensors]
  std::vector<std::atomic<bool>> done;
  std::vector<std::vector<int32_t>> queues;
  std::vector<std::atomic<int64_t>> current, peak;
  std::vector<Tensors> weights, weight_gradients;
  std::vector<Saved> saved;
  std::vector<OperatorRun> runs;
  std::vector<double> losses;
  std::atomic<int64_t> transferred{0};
  int64_t steps = 0;
  Clock clock;
  std::mutex mutex;
  std::condition_variable changed;
  bool failed = false;
  std::exception_ptr failure;
};

Executor::Executor(std::shared_ptr<const Graph> graph, std::span<const int32_t> placement,
                   int32_t devices, std::span<const double> order, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(std::move(graph), placement, devices, order, options)) {}
Executor::~Executor() = default;

ExecutedStep Executor::step() { return impl_->step(); }

std::vector<double> Executor::data(int32_t op) const {
  if (op < 0 || op >= impl_->graph->operator_count() || !impl_->program.is_input(op))
    throw ArgumentError(fmt::format("execute: operator {} is no input", op + 1));
  const auto flat = impl_->data(op).at(0).to(at::kDouble).reshape({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

std::vector<float> Executor::weight(int32_t op, size_t parameter) const {
  const auto& all = impl_->weights;
  if (op < 0 || op >= static_cast<int32_t>(all.size()) ||
      parameter >= all[static_cast<size_t>(op)].size())
    throw ArgumentError(
        fmt::format("execute: operator {} has no weight {}", op + 1, parameter + 1));
  const auto flat = all[static_cast<size_t>(op)][parameter].detach().reshape({-1});
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

}  // namespace trinity
