// Cuts of rows over unequal devices, against all cuts of small rows.
#include "search/pipeline/layer_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/index.h"
#include "base/random.h"
#include "support/tier.h"

using namespace trinity;

namespace {

constexpr double kNoSplit = std::numeric_limits<double>::infinity();
using Cut = std::vector<int32_t>;

/// Whole numbers of 1/64 below `most`: their sums are exact.
double drawn(RandomStream& random, uint64_t most) {
  return static_cast<double>(random.below(64 * most)) / 64;
}

LayerRow random_row(RandomStream& random) {
  LayerRow row;
  const auto layers = 1 + random.below(6), kinds = 1 + random.below(3);
  row.kinds.resize(kinds);
  row.forward_bytes = row.backward_bytes = {0};
  for (uint64_t l = 0; l < layers; ++l) {
    row.parameter_bytes.push_back(drawn(random, 8));
    row.fixed_bytes.push_back(row.parameter_bytes.back() + drawn(random, 8));
    row.activation_bytes.push_back(drawn(random, 6));
    row.forward_bytes.push_back(l + 1 < layers ? drawn(random, 20) : 0);
    row.backward_bytes.push_back(l + 1 < layers ? drawn(random, 20) : 0);
    for (auto& kind : row.kinds) {
      kind.forward_s.push_back(drawn(random, 8));
      kind.update_s.push_back(random.below(2) ? drawn(random, 2) : 0);
      kind.backward_s.push_back(kind.update_s.back() + drawn(random, 8));
    }
  }
  const double room = 10 + drawn(random, 120);
  for (uint64_t d = 0, count = 1 + random.below(4); d < count; ++d)
    row.devices.push_back({static_cast<int32_t>(random.below(kinds)), room * (1 + drawn(random, 2)),
                           1.0 + static_cast<double>(random.below(4))});
  return row;
}

/// Calls use(device_of) for all cuts of the layers from `first` on.
template <class Use>
void each_cut(const LayerRow& row, size_t first, Cut& device_of, Use& use) {
  if (first == device_of.size()) return use(device_of);
  for (int32_t d = 0; d < row.device_count(); ++d) {
    if (std::find(device_of.begin(), device_of.begin() + static_cast<int64_t>(first), d) !=
        device_of.begin() + static_cast<int64_t>(first))
      continue;
    for (size_t last = first; last < device_of.size(); ++last) {
      for (size_t l = first; l <= last; ++l) device_of[l] = d;
      each_cut(row, last + 1, device_of, use);
    }
  }
}

template <class Use>
void each_cut(const LayerRow& row, Use use) {
  Cut device_of(at(row.count()), -1);
  each_cut(row, 0, device_of, use);
}

int32_t stages_from(const Cut& device_of, size_t layer) {
  int32_t stages = 1;
  for (size_t l = layer + 1; l < device_of.size(); ++l)
    stages += device_of[l] != device_of[l - 1] ? 1 : 0;
  return stages;
}

/// The largest load by the header's words, device by device.
double load_s(const LayerRow& row, const Cut& device_of, int32_t micro_batches) {
  double largest = 0;
  for (int32_t d = 0; d < row.device_count(); ++d) {
    const auto& device = row.devices[d];
    const auto& kind = row.kinds[device.kind];
    double time_s = 0, sent = 0, fixed = 0, kept = 0;
    int32_t behind = 0;
    for (size_t l = 0; l < device_of.size(); ++l) {
      if (device_of[l] != d) continue;
      if (behind == 0) {
        behind = stages_from(device_of, l);
        sent += row.backward_bytes[l];
      }
      if (l + 1 == device_of.size() || device_of[l + 1] != d) sent += row.forward_bytes[l + 1];
      time_s += kind.forward_s[l] + kind.backward_s[l];
      fixed += row.fixed_bytes[l] + row.parameter_bytes[l];
      kept += row.activation_bytes[l];
    }
    if (fixed + std::min(behind, micro_batches) * kept > device.capacity_bytes) return kNoSplit;
    largest = std::max({largest, time_s, sent / device.send_bytes_per_s});
  }
  return largest;
}

/// The longest that a device computes in a step.
double busy_s(const LayerRow& row, const Cut& device_of, int32_t micro_batches) {
  std::vector<double> busy(row.devices.size(), 0);
  for (size_t l = 0; l < device_of.size(); ++l) {
    const auto& kind = row.kinds[row.devices[device_of[l]].kind];
    busy[device_of[l]] +=
        kind.update_s[l] +
        micro_batches * (kind.forward_s[l] + kind.backward_s[l] - kind.update_s[l]);
  }
  return *std::max_element(busy.begin(), busy.end());
}

/// A step for tests: the busiest device, and something of the cut's own; some do not fit.
double step_s(const LayerRow& row, const Cut& device_of, int32_t micro_batches) {
  uint64_t number = 1;
  for (const int32_t d : device_of) number = number * 5 + static_cast<uint64_t>(d);
  RandomStream random(number, "step");
  if (random.below(5) == 0) return kNoSplit;
  return busy_s(row, device_of, micro_batches) + drawn(random, 40);
}

}  // namespace

TEST_CASE("the cut of least load is the least of all cuts that fit") {
  int none = 0, tight = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "rows", seed);
    const auto row = random_row(random);
    const auto micro_batches = 1 + static_cast<int32_t>(random.below(4));
    double least = kNoSplit;
    bool all_fit = true;
    each_cut(row, [&](const Cut& device_of) {
      const double load = load_s(row, device_of, micro_batches);
      least = std::min(least, load);
      all_fit = all_fit && load < kNoSplit;
    });
    const auto found = least_load_cut(row, micro_batches);
    CHECK(found.load_s == least);
    CHECK(found.device_of.empty() == std::isinf(least));
    if (!found.device_of.empty()) CHECK(load_s(row, found.device_of, micro_batches) == least);
    none += std::isinf(least) ? 1 : 0;
    tight += !all_fit && std::isfinite(least) ? 1 : 0;
  }
  CHECK(none > 10);
  CHECK(tight > 40);
}

TEST_CASE("least load: more memory, faster links or another device never make it worse") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "rows", seed);
    const auto row = random_row(random);
    const double load = least_load_cut(row, 3).load_s;
    auto better = row;
    for (auto& device : better.devices) device.capacity_bytes *= 1.5;
    CHECK(least_load_cut(better, 3).load_s <= load);
    better = row;
    for (auto& device : better.devices) device.send_bytes_per_s *= 2;
    CHECK(least_load_cut(better, 3).load_s <= load);
    better = row;
    better.devices.push_back(row.devices[0]);
    CHECK(least_load_cut(better, 3).load_s <= load);
    CHECK(least_load_cut(row, 1).load_s <= load);  // fewer micro-batches in flight
    better = row;
    std::reverse(better.devices.begin(), better.devices.end());
    CHECK(least_load_cut(better, 3).load_s == load);
  }
}

TEST_CASE("the cut of fastest step is the best of all cuts, and few are tried below a known step") {
  int fewer = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "rows", seed);
    const auto row = random_row(random);
    FastestOptions options;
    options.micro_batches = 1 + static_cast<int32_t>(random.below(4));
    double best = kNoSplit;
    int64_t all = 0;
    each_cut(row, [&](const Cut& device_of) {
      best = std::min(best, step_s(row, device_of, options.micro_batches));
      ++all;
    });
    size_t priced = 0;
    const auto steps = [&](const std::vector<Cut>& cuts, double) {
      std::vector<double> times_s;
      for (const auto& cut : cuts) times_s.push_back(step_s(row, cut, options.micro_batches));
      CHECK(cuts.size() <= 256);
      priced += cuts.size();
      return times_s;
    };
    const auto found = fastest_cut(row, options, steps);
    CHECK(found.complete);
    CHECK(found.tried == all);
    CHECK(priced == at(all));
    CHECK(found.step_time_s == best);
    CHECK(found.device_of.empty() == std::isinf(best));
    if (std::isinf(best)) continue;
    CHECK(step_s(row, found.device_of, options.micro_batches) == best);
    options.below_s = best + 1;
    const auto again = fastest_cut(row, options, steps);
    CHECK(again.step_time_s == best);
    CHECK(again.device_of == found.device_of);
    fewer += again.tried < all ? 1 : 0;
    priced = 0;
    options.most_cuts = again.tried - 1;
    CHECK_FALSE(fastest_cut(row, options, steps).complete);
    CHECK(priced == 0);
    options.most_cuts = again.tried;
    options.below_s = best;
    CHECK(fastest_cut(row, options, steps).device_of.empty());
  }
  CHECK(fewer > 90);
}

TEST_CASE("equal work takes devices for equal, in their order; rows and devices must be") {
  LayerRow row;
  row.parameter_bytes.assign(4, 0);
  row.kinds = {{0, {2, 0, 1, 1}, {0, 2, 1, 1}, {0, 0, 0, 0}}, {1, {0, 2, 1, 3}, {2, 0, 1, 1}, {}}};
  row.devices = {{0, 0, 1}, {1, 0, 1}};
  CHECK(equal_work_cut(row) == Cut{0, 0, 1, 1});  // 2, 2, 2 and 3 s
  row.fixed_bytes = row.activation_bytes = row.parameter_bytes;
  row.forward_bytes = row.backward_bytes = {0, 0, 0, 0, 0};
  CHECK_THROWS_AS(least_load_cut(row, 0), ArgumentError);
  auto long_row = row;
  long_row.parameter_bytes.assign(1 << 14, 0);
  long_row.devices.assign(kMostLoadDevices, row.devices[0]);
  CHECK_THROWS_AS(least_load_cut(long_row, 1), LimitError);
  row.devices.assign(kMostLoadDevices + 1, row.devices[0]);
  CHECK_THROWS_AS(least_load_cut(row, 1), ArgumentError);
  row.devices.clear();
  CHECK_THROWS_AS(least_load_cut(row, 1), ArgumentError);
  CHECK_THROWS_AS(equal_work_cut(LayerRow{}), ArgumentError);
}
