#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/simulator.h"
#include "support/build.h"

namespace trinity::test {

/// Two chains of heavy operators that join at the end, on two devices: the best placement gives
/// each chain a device.
inline std::shared_ptr<const Problem> two_chains(int length) {
  GraphMaker make("two chains");
  std::vector<int> ends;
  for (const char* chain : {"a", "b"}) {
    int last = -1;
    for (int i = 0; i < length; ++i) {
      const int op = make.op(chain + std::to_string(i), 1e-3);
      if (last >= 0) make.edge(last, op, 500000);
      last = op;
    }
    ends.push_back(last);
  }
  const int join = make.op("join", 1e-4);
  for (const int end : ends) make.edge(end, join, 500000);
  return std::make_shared<const Problem>(make.share(), uniform_cluster(2, 1e9, 1e-6),
                                         SimulationRules{});
}

}  // namespace trinity::test
