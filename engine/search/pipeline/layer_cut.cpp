#include "search/pipeline/layer_cut.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
#include "search/partition/row_cut.h"

namespace trinity {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr size_t kBatch = 256;  // cuts evaluated at a time
constexpr int64_t kLooks = 50;  // stages examined per cut that may be tried
constexpr size_t kMostStates = size_t{1} << 26;  // about 1 GB

void check_row(const LayerRow& row) {
  if (row.count() == 0 || row.device_count() == 0)
    throw ArgumentError("layer cut: expected at least 1 layer and 1 device, got {} and {}", row.count(),
                        row.device_count());
}

/// Prefix sums over layers.
std::vector<double> sums_of(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> sums{0};
  for (size_t l = 0; l < first.size(); ++l) sums.push_back(sums[l] + (first[l] + second[l]));
  return sums;
}

/// The dynamic program of least_load_cut(): best_ of a set of devices and a layer is the last
/// choice for placing that layer and all later ones on exactly these devices.
class LeastLoad {
 public:
  LeastLoad(const LayerRow& row, int32_t micro_batches)
      : row_(row),
        micro_batches_(micro_batches),
        states_(at(row.count()) + 1),
        stored_(sums_of(row.fixed_bytes, row.parameter_bytes)),
        activations_(sums_of(row.activation_bytes, std::vector<double>(at(row.count()), 0))),
        best_(states_ << row.devices.size()) {
    for (const auto& kind : row.kinds) times_.push_back(sums_of(kind.forward_s, kind.backward_s));
    best_[at(row.count())].load_s = 0;  // no device, no layer
  }

  LeastLoadCut run() {
    uint32_t found = 0;
    for (uint32_t set = 1; set < uint32_t{1} << row_.devices.size(); ++set) {
      for (int32_t d = 0; d < row_.device_count(); ++d)
        if (set >> d & 1) put_first(set, d);
      if (best(set, 0).load_s < best(found, 0).load_s) found = set;
    }
    LeastLoadCut cut;
    cut.load_s = best(found, 0).load_s;
    for (uint32_t set = found; set != 0;) {
      const auto& choice = best(set, static_cast<int32_t>(cut.device_of.size()));
      cut.device_of.resize(at(choice.end), choice.device);
      set -= uint32_t{1} << choice.device;
    }
    return cut;
  }

 private:
  struct Choice {
    double load_s = kInfinite;
    int32_t device = -1, end = 0;  // of the first stage
  };
  Choice& best(uint32_t set, int32_t layer) { return best_[set * states_ + at(layer)]; }

  /// Tries all first stages on device `d`, with the rest on the others of `set`.
  void put_first(uint32_t set, int32_t d) {
    const auto& device = row_.devices[d];
    const auto& times = times_[device.kind];
    const uint32_t rest = set - (uint32_t{1} << d);
    const double in_flight = std::min(std::popcount(set), micro_batches_);
    for (int32_t first = row_.count() - 1; first >= 0; --first) {
      auto& choice = best(set, first);
      for (int32_t end = first + 1; end <= row_.count(); ++end, stop_.step()) {
        const double time_s = times[end] - times[first];
        const double stored =
            stored_[end] - stored_[first] + in_flight * (activations_[end] - activations_[first]);
        if (time_s >= choice.load_s || stored > device.capacity_bytes) break;  // longer ones, too
        const double sent = row_.forward_bytes[end] + row_.backward_bytes[first];
        const double load_s =
            std::max({best(rest, end).load_s, time_s, sent / device.send_bytes_per_s});
        if (load_s < choice.load_s) choice = {load_s, d, end};
      }
    }
  }

  const LayerRow& row_;
  int32_t micro_batches_;
  size_t states_;  // per set
  std::vector<double> stored_, activations_;
  std::vector<std::vector<double>> times_;  // by class of devices
  std::vector<Choice> best_;
  StopPoll stop_;
};

/// Every cut in which no device is busy for `limit_s` or longer.
class PossibleSplits {
 public:
  PossibleSplits(const LayerRow& row, const FastestOptions& options)
      : row_(row), options_(options), fewest_(at(row.count()) + 1, 0) {
    const double micro_batches = options.micro_batches;
    for (const auto& kind : row.kinds) {
      auto& busy = busy_.emplace_back();
      for (int32_t l = 0; l < row.count(); ++l)
        busy.push_back(micro_batches * (kind.forward_s[l] + kind.backward_s[l] - kind.update_s[l]) +
                       kind.update_s[l]);
    }
    for (int32_t l = row.count() - 1; l >= 0; --l) {
      double least = kInfinite;
      for (const auto& busy : busy_) least = std::min(least, busy[l]);
      fewest_[l] = fewest_[l + 1] + least;
    }
  }

  /// Calls use(device_of) for each; returns their number, or -1 if a limit is exceeded.
  template <class Use>
  int64_t each(Use use) {
    count_ = looks_ = 0;
    used_.assign(row_.devices.size(), false);
    device_of_.assign(at(row_.count()), -1);
    place(0, row_.device_count(), use);
    return too_many() ? -1 : count_;
  }

 private:
  bool too_many() const {
    return count_ > options_.most_cuts || looks_ > kLooks * options_.most_cuts;
  }

  /// Places layer `first` and all later ones on `left` devices.
  template <class Use>
  void place(int32_t first, int32_t left, Use& use) {
    if (first == row_.count()) {
      ++count_;
      use(device_of_);
      return;
    }
    if (fewest_[first] >= left * options_.below_s) return;
    for (int32_t d = 0; d < row_.device_count(); ++d) {
      if (used_[d]) continue;
      used_[d] = true;
      double busy_s = 0;
      for (int32_t l = first; l < row_.count(); ++l, stop_.step()) {
        busy_s += busy_[row_.devices[d].kind][l];
        ++looks_;
        if (busy_s >= options_.below_s || too_many()) break;
        device_of_[l] = d;
        place(l + 1, left - 1, use);
      }
      used_[d] = false;
    }
  }

  const LayerRow& row_;
  const FastestOptions& options_;
  std::vector<std::vector<double>> busy_;  // [class][layer]: seconds that it occupies a device
  std::vector<double> fewest_;  // minimum seconds of a layer and all later ones on any device
  std::vector<bool> used_;
  std::vector<int32_t> device_of_;
  int64_t count_ = 0, looks_ = 0;
  StopPoll stop_;
};

}  // namespace

LeastLoadCut least_load_cut(const LayerRow& row, int32_t micro_batches) {
  check_row(row);
  if (row.device_count() > kMostLoadDevices || micro_batches < 1)
    throw ArgumentError("layer cut: expected at most {} devices and at least 1 micro-batch, got {} and {}",
                        kMostLoadDevices, row.device_count(), micro_batches);
  if (at(row.count()) >= kMostStates >> row.devices.size())
    throw LimitError("layer cut: {} layers on {} devices need a larger table than supported", row.count(),
                     row.device_count());
  return LeastLoad(row, micro_batches).run();
}

std::vector<int32_t> equal_work_cut(const LayerRow& row) {
  check_row(row);
  std::vector<double> work(at(row.count()), 0);
  for (int32_t l = 0; l < row.count(); ++l)
    for (const auto& device : row.devices) {
      const auto& kind = row.kinds[device.kind];
      work[l] += (kind.forward_s[l] + kind.backward_s[l]) / row.device_count();
    }
  return cut_row(work, row.device_count());
}

FastestCut fastest_cut(const LayerRow& row, const FastestOptions& options,
                       const StepTimes& step_times_s) {
  check_row(row);
  PossibleSplits possible(row, options);
  FastestCut found;
  found.tried = possible.each([](const std::vector<int32_t>&) {});
  found.complete = found.tried >= 0;
  if (!found.complete) return found;
  found.step_time_s = options.below_s;
  std::vector<std::vector<int32_t>> batch;
  const auto price = [&] {
    if (batch.empty()) return;
    const auto times_s = step_times_s(batch, found.step_time_s);
    for (size_t i = 0; i < batch.size(); ++i)
      if (times_s.at(i) < found.step_time_s) {
        found.step_time_s = times_s[i];
        found.device_of = batch[i];
      }
    batch.clear();
  };
  possible.each([&](const std::vector<int32_t>& device_of) {
    batch.push_back(device_of);
    if (batch.size() == kBatch) price();
  });
  price();
  return found;
}

}  // namespace trinity
