#include "strategy/own_order.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "base/index.h"
#include "strategy/mesh_schedule.h"

namespace trinity {
namespace {

constexpr std::string_view kWorks = "FBIW";  // as ChunkWork
constexpr std::string_view kMoves[] = {"SEND_F", "RECV_F",  "SEND_B",     "RECV_B",
                                       "UNSHARD", "RESHARD", "REDUCE_GRAD"};
constexpr int64_t kMostOwnTasks = int64_t{1} << 22;

std::string_view trimmed(std::string_view text) {
  const auto skipped = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '"'; };
  while (!text.empty() && skipped(text.front())) text.remove_prefix(1);
  while (!text.empty() && skipped(text.back())) text.remove_suffix(1);
  return text;
}

/// Calls body(part, number from 1) for the text between separators.
template <class Body>
void for_parts(std::string_view text, char mark, Body body) {
  for (int32_t number = 1;; ++number) {
    const auto end = text.find(mark);
    body(text.substr(0, end), number);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// Reads the cells of one row.
class RowReader {
 public:
  explicit RowReader(int32_t row) : row_(row) {}

  std::vector<ChunkTask> run(std::string_view text) {
    for_parts(text, ',', [&](std::string_view cell, int32_t column) {
      column_ = column;
      read(trimmed(cell));
    });
    if (tasks_.empty()) throw ArgumentError("row {}: expected tasks, got none", row_);
    return std::move(tasks_);
  }

 private:
  [[noreturn]] void refuse(std::string_view cell, const char* expected) const {
    throw ArgumentError("row {}, column {}: expected {}, got '{}'", row_, column_, expected, cell.substr(0, 40));
  }

  void read(std::string_view cell) {
    constexpr std::string_view kBoth = ")OVERLAP_F_B";
    if (cell.empty()) return;
    if (cell.front() != '(' || !cell.ends_with(kBoth)) return read_task(cell, cell);
    int32_t count = 0;
    for_parts(cell.substr(1, cell.size() - 1 - kBoth.size()), ';', [&](std::string_view one, int32_t number) {
      count = number;
      read_task(trimmed(one), cell);
    });
    if (count != 2) refuse(cell, "two tasks in OVERLAP_F_B");
  }

  void read_task(std::string_view text, std::string_view cell) {
    constexpr std::string_view kDigits = "0123456789";
    const auto stage_end = std::min(text.find_first_not_of(kDigits), text.size());
    const auto word_end = std::min(text.find_first_of(kDigits, stage_end), text.size());
    const auto stage = text.substr(0, stage_end), word = text.substr(stage_end, word_end - stage_end);
    const auto micro_batch = text.substr(word_end);
    const bool letters = word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string_view::npos;
    if (stage.empty() || word.empty() || !letters || micro_batch.find_first_not_of(kDigits) != std::string_view::npos)
      refuse(cell, "STAGE KIND MICROBATCH as in 0F1");
    if (std::find(std::begin(kMoves), std::end(kMoves), word) != std::end(kMoves)) return;
    const auto work = word.size() == 1 ? kWorks.find(word) : std::string_view::npos;
    if (work == std::string_view::npos) refuse(word, "a task F, B, I or W");
    if (micro_batch.empty()) refuse(cell, "a micro-batch after the kind");
    if (stage.size() > 6 || micro_batch.size() > 7) refuse(cell, "smaller numbers");
    tasks_.push_back({static_cast<ChunkWork>(work), std::stoi(std::string(stage)), std::stoi(std::string(micro_batch))});
  }

  int32_t row_, column_ = 0;
  std::vector<ChunkTask> tasks_;
};

int32_t stages_of(const PipelineOrder& order) {
  int32_t last = 0;
  for (const auto& tasks : order)
    for (const auto& task : tasks) last = std::max(last, task.chunk);
  return last + 1;
}

std::string cell_of(const ChunkTask& task) {
  return fmt::format("{}{}{}", task.chunk, kWorks[static_cast<size_t>(task.work)], task.micro_batch);
}

/// Completed work of a micro-batch in a stage, as bits: 1 forward, 2 input gradients, 4 weight gradients.
struct Needs {
  int adds, before;
};
constexpr std::array<Needs, 4> kNeeds = {{{1, 0}, {6, 1}, {2, 1}, {4, 3}}};  // by ChunkWork

/// Checks that each task occurs once and in order within its stage.
void check_complete(const PipelineOrder& order, int32_t stages, int32_t micro_batches) {
  std::vector<int> done(at(int64_t{stages} * micro_batches), 0);
  std::vector<size_t> row_of(at(stages), 0);  // from 1
  for (size_t row = 1; row <= order.size(); ++row)
    for (const auto& task : order[row - 1]) {
      auto& first = row_of[at(task.chunk)];
      if (first != 0 && first != row)
        throw ArgumentError("row {}: stage {} is also in row {}, expected all of its tasks in one row", row, task.chunk,
                            first);
      first = row;
      auto& bits = done[at(int64_t{task.chunk} * micro_batches + task.micro_batch)];
      const auto& needs = kNeeds[static_cast<size_t>(task.work)];
      if ((bits & needs.adds) != 0)
        throw ArgumentError("row {}: expected each task once, got {} twice", row, cell_of(task));
      if ((bits & needs.before) != needs.before)
        throw ArgumentError("row {}: {} precedes a task of its stage that it depends on", row, cell_of(task));
      bits |= needs.adds;
    }
  for (size_t i = 0; i < done.size(); ++i)
    if (done[i] != 7)
      throw ArgumentError("micro-batch {} of stage {} lacks a forward or backward task", i % at(micro_batches),
                          i / at(micro_batches));
}

}  // namespace

std::vector<std::string> order_rows(const PipelineOrder& order) {
  std::vector<std::string> rows;
  for (const auto& tasks : order) {
    auto& row = rows.emplace_back();
    for (const auto& task : tasks) row += (row.empty() ? "" : ",") + cell_of(task);
  }
  return rows;
}

PipelineOrder parse_order(std::span<const std::string> rows) {
  PipelineOrder order;
  for (const auto& row : rows) order.push_back(RowReader(static_cast<int32_t>(order.size()) + 1).run(row));
  return order;
}

int32_t virtual_stages_of(const PipelineOrder& order) {
  return stages_of(order) / static_cast<int32_t>(order.size());
}

int32_t micro_batches_of(const PipelineOrder& order) {
  int32_t last = 0;
  for (const auto& tasks : order)
    for (const auto& task : tasks) last = std::max(last, task.micro_batch);
  return last + 1;
}

PipelineSchedule layout_of(const PipelineOrder& order) {
  const int32_t stages = stages_of(order), v = virtual_stages_of(order);
  const auto any = [](const std::vector<ChunkTask>& tasks, auto is) { return std::any_of(tasks.begin(), tasks.end(), is); };
  const bool turns = any(order[0], [&](const ChunkTask& task) { return task.chunk == stages - 1; });
  if (v == 2 && turns) return PipelineSchedule::zb_v;
  const bool splits = std::any_of(order.begin(), order.end(), [&](const auto& tasks) {
    return any(tasks, [](const ChunkTask& task) { return task.work == ChunkWork::input; });
  });
  if (v == 1) return splits ? PipelineSchedule::zb_h1 : PipelineSchedule::one_f_one_b;
  return splits ? PipelineSchedule::zb_interleaved : PipelineSchedule::interleaved;
}

void check_order(const PipelineOrder& order) {
  const auto p = static_cast<int32_t>(order.size());
  if (p < 2) throw ArgumentError("expected at least 2 rows, one per pipeline rank, got {}", p);
  const int32_t stages = stages_of(order), micro_batches = micro_batches_of(order);
  if (int64_t{stages} * micro_batches > kMostOwnTasks)
    throw LimitError("{} stages of {} micro-batches are more than {} tasks", stages, micro_batches, kMostOwnTasks);
  check_complete(order, stages, micro_batches);
  const auto layout = layout_of(order);
  for (int32_t row = 0; row < p; ++row)
    for (const auto& task : order[at(row)])
      if (stages % p != 0 || device_of_chunk(layout, p, task.chunk) != row)
        throw ArgumentError("expected stages that visit the rows in order, round-robin or forwards "
                            "and then backwards");
  schedule_bubble(order, virtual_stages_of(order), micro_batches);
}

std::string schedule_name_of(const PipelineOrder& order) {
  Parallelism given;
  given.mesh.pipeline = static_cast<int32_t>(order.size());
  given.virtual_stages = virtual_stages_of(order);
  given.micro_batches = micro_batches_of(order);
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-interleaved", "zb-v", "dualpipe-v"}) {
    given.schedule = name;
    if (takes_chunks(parse_choice<PipelineSchedule>(name)) != (given.virtual_stages > 1)) continue;
    try {
      check_pipeline(given);
    } catch (const ArgumentError&) {
      continue;  // it has other micro-batches or stages
    }
    if (order_of(given) == order) return name;
  }
  return "";
}

}  // namespace trinity
