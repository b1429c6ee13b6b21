// Pipelines through the simulator: closed forms.
#include <doctest/doctest.h>

#include "support/stages.h"

using namespace trinity;

namespace {

/// Runs p * v stages on p devices, v chunks each; what crosses stages has no bytes.
test::RanStages pipeline(int p, int micro_batches, int v, PipelineSchedule kind,
                         QueueModel queue = QueueModel::sender) {
  const auto count = static_cast<size_t>(p * v);
  return test::run({std::vector<double>(count, 1.0 / v), std::vector<double>(count, 2.0 / v)},
                   micro_batches, kind, queue, p);
}

/// Most activations at once on every device.
std::vector<int64_t> most_kept(const test::RanStages& ran) {
  std::vector<int64_t> kept;
  for (const auto& device : ran.metrics.devices)
    kept.push_back(device.peak_memory_bytes / test::kKept);
  return kept;
}

constexpr auto kGpipe = PipelineSchedule::gpipe;
constexpr auto k1F1B = PipelineSchedule::one_f_one_b;
constexpr auto kInterleaved = PipelineSchedule::interleaved;

}  // namespace

TEST_CASE("equal stages take (m + p - 1)(f + b), under GPipe and 1F1B") {
  struct Case {
    int p, m;
    double units;
  };
  for (const auto& [p, m, units] : {Case{4, 8, 33}, Case{4, 4, 21}, Case{2, 4, 15},
                                    Case{8, 32, 117}, Case{1, 5, 15}, Case{5, 2, 18}}) {
    CAPTURE(p);
    CAPTURE(m);
    CHECK(units == (m + p - 1) * 3);
    for (const auto queue : test::kQueues) {
      CHECK(pipeline(p, m, 1, kGpipe, queue).units == units);
      CHECK(pipeline(p, m, 1, k1F1B, queue).units == units);
    }
  }
}

TEST_CASE("interleaved stages take (m + (p - 1) / v)(f + b)") {
  CHECK(pipeline(4, 8, 2, kInterleaved).units == 28.5);
  CHECK(pipeline(4, 8, 4, kInterleaved).units == 26.25);
  CHECK(pipeline(8, 32, 4, kInterleaved).units == 101.25);
  CHECK(pipeline(4, 8, 1, kInterleaved).units == 33);
}

TEST_CASE("GPipe keeps m activations a stage, 1F1B at most p - s") {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {1, 2, 4, 8, 32}) {
      CAPTURE(p);
      CAPTURE(m);
      const auto gpipe = most_kept(pipeline(p, m, 1, kGpipe));
      const auto other = most_kept(pipeline(p, m, 1, k1F1B));
      for (int s = 0; s < p; ++s) {
        CHECK(gpipe[s] == m);
        CHECK(other[s] == std::min(p - s, m));
      }
    }
  CHECK(most_kept(pipeline(4, 8, 2, kInterleaved)) == std::vector<int64_t>{11, 9, 7, 5});
}
