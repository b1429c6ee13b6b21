// The same runs in SimGrid (simgrid.org), where it is installed: a graph of its activities whose
// dependencies hold every device's and every sender's order, so that nothing is left to a rule.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/textbook.h"

namespace trinity::bench {

struct SimGridTransfer {
  int op, to;  // who wrote the tensor, and the device that it is sent to
};

/// One run to be repeated: what a simulation of the textbook's rules started, in order.
struct SimGridRun {
  std::vector<int32_t> placement;
  std::vector<int> order;                  // operators by their start
  std::vector<SimGridTransfer> transfers;  // by their start
};

/// SimGrid's engine, of which a process has one, with a host for every device.
class SimGrid {
 public:
  /// Null where SimGrid was not found when this was built.
  static std::unique_ptr<SimGrid> open(int devices);
  virtual ~SimGrid() = default;

  virtual std::string version() const = 0;
  /// The end of the last operator.
  virtual int64_t step_ns(const TextbookGraph& graph, const SimGridRun& run) = 0;
};

}  // namespace trinity::bench
