#pragma once

#include <memory>
#include <string>

#include "formats/pipedream.h"
#include "graph/fold.h"
#include "simulator/problem.h"
#include "support/build.h"

namespace trinity::test {

/// A PipeDream profile under the rules of the figures in data/placeto-sim: one operator a layer, on
/// equal devices whose one outgoing bus carries 7600 bytes a microsecond.
inline Problem placeto_problem(const std::string& path, int devices) {
  return {std::make_shared<const Graph>(fold_backward(read_pipedream(path))),
          uniform_cluster(devices, 7600e6, 0), SimulationRules::placeto()};
}

}  // namespace trinity::test
