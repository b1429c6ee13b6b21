#include "execute/worker.h"

#include <algorithm>

#include "base/error.h"
#include "distribute/job.h"

namespace trinity {

std::vector<Worker> make_workers(int32_t devices, const ExecutorOptions& options) {
  if (!options.devices.empty() && options.devices.size() != static_cast<size_t>(devices))
    throw ArgumentError("execute: expected the names of {} devices, got {}", devices, options.devices.size());
  std::vector<Worker> workers(static_cast<size_t>(devices));
  std::vector<WorkerDevice> all;
  for (int32_t d = 0; d < devices; ++d) {
    Worker& worker = workers[d];
    worker.device = d;
    worker.on = parse_worker_device(options.devices.empty() ? fmt::format("cpu:{}", d)
                                                            : options.devices[d]);
    worker.memory = std::make_shared<MemoryAccount>(worker.on.name, options.memory_limit_bytes,
                                                    worker.on.cuda ? worker.on.index : -1);
    all.push_back(worker.on);
  }
  const auto cores = worker_cores(all);
  for (size_t d = 0; d < workers.size(); ++d) workers[d].core = cores[d];
  return workers;
}

namespace {

constexpr size_t kCopyNumbers = 7;

/// The copies of all ranks, in order of rank: each writes its own into a vector of zeros.
std::vector<CopyRun> all_copies(Job& job, const std::vector<CopyRun>& own) {
  std::vector<double> counts(static_cast<size_t>(job.size()));
  counts[job.rank()] = static_cast<double>(own.size());
  job.sum(counts);
  size_t total = 0, first = 0;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    if (static_cast<int>(rank) == job.rank()) first = total;
    total += static_cast<size_t>(counts[rank]);
  }
  std::vector<double> numbers(total * kCopyNumbers);
  for (size_t i = 0; i < own.size(); ++i) {
    const CopyRun& copy = own[i];
    double* to = numbers.data() + (first + i) * kCopyNumbers;
    for (const double number : {static_cast<double>(copy.task), static_cast<double>(copy.output),
                                static_cast<double>(copy.from), static_cast<double>(copy.to),
                                static_cast<double>(copy.bytes), copy.start_s, copy.end_s})
      *to++ = number;
  }
  if (total > 0) job.sum(numbers);
  std::vector<CopyRun> all;
  for (size_t i = 0; i < total; ++i) {
    const double* at = numbers.data() + i * kCopyNumbers;
    all.push_back({static_cast<int32_t>(at[0]), static_cast<int32_t>(at[1]),
                   static_cast<int32_t>(at[2]), static_cast<int32_t>(at[3]),
                   static_cast<int64_t>(at[4]), at[5], at[6]});
  }
  return all;
}

}  // namespace

void join_reports(Job& job, ExecutedStep& step) {
  std::vector<double> losses(static_cast<size_t>(job.size()));
  losses[static_cast<size_t>(job.rank())] = step.loss;
  std::vector<double> numbers = {static_cast<double>(step.transferred_bytes)};
  numbers.insert(numbers.end(), losses.begin(), losses.end());
  numbers.insert(numbers.end(), step.busy_s.begin(), step.busy_s.end());
  for (const int64_t bytes : step.peak_memory_bytes) numbers.push_back(static_cast<double>(bytes));
  for (const auto& run : step.tasks) {
    numbers.push_back(run.start_s);
    numbers.push_back(run.end_s);
    numbers.push_back(static_cast<double>(run.memory_bytes));
  }
  job.sum(numbers);
  auto next = numbers.begin();
  step.transferred_bytes = static_cast<int64_t>(*next++);
  step.loss = 0;  // summed up as for threads
  for (int rank = 0; rank < job.size(); ++rank) step.loss += *next++;
  for (double& busy : step.busy_s) busy = *next++;
  for (int64_t& bytes : step.peak_memory_bytes) bytes = static_cast<int64_t>(*next++);
  for (auto& run : step.tasks) {
    run.start_s = *next++;
    run.end_s = *next++;
    run.memory_bytes = static_cast<int64_t>(*next++);
    step.step_time_s = std::max(step.step_time_s, run.end_s);
  }
  step.copies = all_copies(job, step.copies);
}

}  // namespace trinity
