#include "strategy/chunk_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "base/error.h"
#include "strategy/mesh_schedule.h"

using namespace trinity;

namespace {

constexpr auto kGpipeOrder = PipelineSchedule::gpipe;
constexpr auto k1F1BOrder = PipelineSchedule::one_f_one_b;
constexpr auto kInterleavedOrder = PipelineSchedule::interleaved;
constexpr auto kZbH1 = PipelineSchedule::zb_h1;
constexpr auto kZbH2 = PipelineSchedule::zb_h2;
constexpr auto kZbInterleaved = PipelineSchedule::zb_interleaved;
constexpr auto kZbV = PipelineSchedule::zb_v;
constexpr auto kDualPipeV = PipelineSchedule::dualpipe_v;

struct OrderCase {
  PipelineSchedule schedule;
  int32_t p, v, m;
};

/// Sizes that every schedule takes.
std::vector<OrderCase> order_cases() {
  std::vector<OrderCase> all;
  for (const int32_t p : {1, 2, 3, 4, 5, 8})
    for (const int32_t m : {2 * p, 3 * p, 7 * p}) {
      for (const auto schedule : {kGpipeOrder, k1F1BOrder, kZbH1, kZbH2})
        all.push_back({schedule, p, 1, m + 1});
      for (const auto schedule : {kZbV, kDualPipeV}) all.push_back({schedule, p, 2, m + 1});
      for (const int32_t v : {1, 2, 3, 4})
        for (const auto schedule : {kInterleavedOrder, kZbInterleaved})
          all.push_back({schedule, p, v, m});
    }
  return all;
}

/// A device's order as PyTorch writes it: stage, work, micro-batch.
std::string order_text(PipelineSchedule schedule, int32_t p, int32_t v, int32_t m, int32_t device) {
  std::string text;
  for (const auto& task : chunk_order(schedule, p, v, m, device))
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", task.chunk,
                        "FBIW"[static_cast<size_t>(task.work)], task.micro_batch);
  return text;
}

/// Most chunks of a device at once that went forward and not through `until`.
int most_kept(const std::vector<ChunkTask>& order, ChunkWork from, ChunkWork until) {
  int kept = 0, most = 0;
  for (const auto& task : order) {
    kept += (task.work == from ? 1 : 0) - (task.work == until ? 1 : 0);
    most = std::max(most, kept);
  }
  return most;
}

}  // namespace

TEST_CASE("a device runs every work on its chunks once for every micro-batch") {
  for (const auto& [schedule, p, v, m] : order_cases()) {
    CAPTURE(choice_name(schedule));
    CAPTURE(p);
    CAPTURE(v);
    CAPTURE(m);
    std::map<std::pair<int32_t, int32_t>, std::array<int, 4>> times;
    for (int32_t device = 0; device < p; ++device)
      for (const auto& task : chunk_order(schedule, p, v, m, device)) {
        CHECK(device_of_chunk(schedule, p, task.chunk) == device);
        ++times[{task.chunk, task.micro_batch}][static_cast<size_t>(task.work)];
      }
    CHECK(times.size() == static_cast<size_t>(p * v * m));
    for (const auto& [chunk, done] : times) {
      CHECK(done[0] == 1);            // forward
      CHECK(done[1] + done[2] == 1);  // both gradients together, or input gradients
      CHECK(done[2] == done[3]);      // each with weight gradients
      if (!splits_backward(schedule)) CHECK(done[1] == 1);
    }
    CHECK(schedule_bubble(schedule, p, v, m).of_step > -1e-12);  // nobody waits for ever
  }
}

TEST_CASE("orders go forwards, then backwards, as PyTorch writes them") {
  CHECK(order_text(kZbH1, 2, 1, 3, 0) == "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
  CHECK(order_text(kZbH1, 2, 1, 3, 1) == "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2");
  CHECK(order_text(kZbH2, 2, 1, 3, 0) == "0F0 0F1 0F2 0I0 0W0 0I1 0W1 0I2 0W2");
  CHECK(order_text(kZbH2, 2, 1, 3, 1) == "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2");
  CHECK(order_text(kZbInterleaved, 2, 2, 2, 1) ==
        "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1");
  CHECK(order_text(kZbV, 2, 2, 4, 0) ==
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 "
        "0I3 0W3");
  CHECK(order_text(kZbV, 2, 2, 4, 1) ==
        "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 "
        "2W3 1W3");
  CHECK(order_text(kDualPipeV, 2, 2, 4, 0) ==
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3");
  CHECK(order_text(kDualPipeV, 2, 2, 4, 1) ==
        "1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3");
}

TEST_CASE("the bubble of equal stages is what the papers say") {
  for (const int32_t p : {2, 3, 4, 6, 8})
    for (const int32_t m : {2 * p, 4 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const double stages = p - 1, micro = m;
      for (const auto schedule : {kGpipeOrder, k1F1BOrder}) {
        CHECK(schedule_bubble(schedule, p, 1, m).of_device == doctest::Approx(stages / micro));
        CHECK(schedule_bubble(schedule, p, 1, m).of_step == doctest::Approx(stages / micro));
      }
      for (const int32_t v : {2, 3, 4})
        CHECK(schedule_bubble(kInterleavedOrder, p, v, m).of_step ==
              doctest::Approx(stages / (v * micro)));
      CHECK(schedule_bubble(kZbH1, p, 1, m).of_device == doctest::Approx(stages / (3 * micro)));
      CHECK(schedule_bubble(kZbH1, p, 1, m).of_step == doctest::Approx(stages / (3 * micro)));
      for (const int32_t fewest : {m, 2 * p - 1}) {
        CHECK(std::abs(schedule_bubble(kZbH2, p, 1, fewest).of_device) < 1e-12);
        CHECK(schedule_bubble(kZbH2, p, 1, fewest).of_step == doctest::Approx(stages / (3 * fewest)));
      }
      CHECK(std::abs(schedule_bubble(kZbV, p, 2, m).of_device) < 1e-12);
      CHECK(schedule_bubble(kZbV, p, 2, m).of_step == doctest::Approx(stages / (6 * micro)));
    }
}

TEST_CASE("a bubble goes by the times of a device's work") {
  const ChunkTimes times{2, 1.5, 1};  // ZB-H1: (p - 1)(F + I - W), and 1F1B: (p - 1)(F + B)
  CHECK(schedule_bubble(kZbH1, 4, 1, 16, times).of_step == doctest::Approx(3 * 2.5 / (16 * 4.5)));
  CHECK(schedule_bubble(kZbH2, 4, 1, 16, times).of_device ==  // (p - 1)(F + I - 2 W)
        doctest::Approx(3 * 1.5 / (16 * 4.5)));
  CHECK(schedule_bubble(k1F1BOrder, 4, 1, 16, times).of_step ==
        doctest::Approx(3 * 4.5 / (16 * 4.5)));
  Parallelism given;
  given.mesh.pipeline = 4;
  given.micro_batches = 8;
  given.schedule = "zb-h1";
  CHECK(schedule_bubble(given).of_step == doctest::Approx(0.125));
  given.recompute = Recompute::full;  // forward runs again before the gradients of inputs
  CHECK(schedule_bubble(given).of_step == doctest::Approx(3 * 2 / (8 * 4.0)));
  given.mesh.pipeline = 1;
  CHECK(schedule_bubble(given).of_step == 0);
  CHECK_THROWS_AS(schedule_bubble(PipelineSchedule::pipedream, 2, 1, 4), ArgumentError);
  CHECK_THROWS_AS(schedule_bubble(kZbH1, 4096, 1, 1 << 20), LimitError);
}

namespace {

/// DualPipeV's order with its pairs: a forward and a backward of the other chunk that begin and end
/// together, but for the first pair of the last device.
std::vector<std::vector<ChunkTask>> pairs_of(int32_t p, int32_t m, int32_t device) {
  const auto order = chunk_order(kDualPipeV, p, 2, m, device);
  std::vector<std::vector<ChunkTask>> slots;
  bool apart = device == p - 1;
  for (const auto& task : order) {
    const bool ends = task.work == ChunkWork::backward && !slots.empty() &&
                      slots.back().size() == 1 && slots.back()[0].work == ChunkWork::forward;
    if (ends && !apart)
      slots.back().push_back(task);
    else
      slots.push_back({task});
    apart = apart && !ends;
  }
  return slots;
}

/// Idle time of a step of DualPipeV in forward passes of a chunk, every work one; a pair three.
double idle_of_pairs(int32_t p, int32_t m) {
  std::vector<std::vector<std::vector<ChunkTask>>> slots;
  for (int32_t device = 0; device < p; ++device) slots.push_back(pairs_of(p, m, device));
  std::map<std::array<int32_t, 3>, double> end;  // whether backward, chunk, micro-batch
  std::vector<size_t> next(static_cast<size_t>(p), 0);
  std::vector<double> clock(static_cast<size_t>(p), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t d = 0; d < slots.size(); ++d) {
      if (next[d] == slots[d].size()) continue;
      double from = clock[d], length = 0;
      for (const auto& [work, chunk, micro] : slots[d][next[d]]) {
        length += work == ChunkWork::backward ? 2 : 1;
        const bool first = work == ChunkWork::forward && chunk == 0;
        if (first || work == ChunkWork::weight) continue;
        const bool turns = work != ChunkWork::forward && chunk < 2 * p - 1;
        const int32_t other = work == ChunkWork::forward ? chunk - 1 : turns ? chunk + 1 : chunk;
        const auto found = end.find({turns, other, micro});
        from = found == end.end() ? 1e300 : std::max(from, found->second);
      }
      if (from > 1e200) continue;
      clock[d] = from + length;
      for (const auto& [work, chunk, micro] : slots[d][next[d]])
        if (work != ChunkWork::weight) end[{work != ChunkWork::forward, chunk, micro}] = clock[d];
      ++next[d];
      moved = true;
    }
  }
  for (size_t d = 0; d < slots.size(); ++d) CHECK(next[d] == slots[d].size());
  return *std::max_element(clock.begin(), clock.end()) - 6.0 * m;
}

}  // namespace

TEST_CASE("DualPipeV idles (p - 1)(F&B + B - 3W) of a chunk, half of that where pairs end apart") {
  for (const int32_t p : {2, 3, 4, 8})
    for (const int32_t m : {2 * p, 5 * p}) {
      CAPTURE(p);
      CHECK(idle_of_pairs(p, m) == (p - 1) * (3 + 2 - 3));
      const auto bubble = schedule_bubble(kDualPipeV, p, 2, m);
      CHECK(bubble.of_step == doctest::Approx((p - 1) / (6.0 * m)));
      CHECK(bubble.of_device == doctest::Approx(bubble.of_step));
    }
}

TEST_CASE("the number of chunks in flight agrees with the papers") {
  const auto forward = ChunkWork::forward, input = ChunkWork::input, weight = ChunkWork::weight;
  for (const int32_t p : {2, 4, 8})
    for (int32_t r = 0; r < p; ++r) {
      CAPTURE(p);
      CAPTURE(r);
      const auto h1 = chunk_order(kZbH1, p, 1, 4 * p, r);
      CHECK(most_kept(h1, forward, input) == p - r);
      CHECK(most_kept(h1, input, weight) ==
            r + 1);  // of these one just while weights are worked on
      CHECK(most_kept(h1, forward, weight) == p);
      const auto plain = chunk_order(k1F1BOrder, p, 1, 4 * p, r);
      CHECK(most_kept(plain, forward, ChunkWork::backward) == p - r);
      CHECK(most_kept(chunk_order(kZbV, p, 2, 4 * p, r), forward, weight) == 2 * p);
      CHECK(warm_up(kZbV, p, 2, 4 * p, r) >= p);
    }
}
