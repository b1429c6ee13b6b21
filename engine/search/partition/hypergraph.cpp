#include "search/partition/hypergraph.h"

#include <algorithm>
#include <map>

namespace trinity {

Hypergraph::Hypergraph(const PlacementSpace& space) : units(space.units()) {
  const auto& problem = space.problem();
  const auto unit_of = problem.graph().units();
  std::map<std::vector<int32_t>, int64_t> nets;
  std::vector<std::vector<int32_t>> readers;
  for (int32_t op = 0; op < problem.operators(); ++op) {
    const int32_t home = unit_of[op];
    const auto outputs =
        static_cast<size_t>(problem.first_output(op + 1) - problem.first_output(op));
    readers.assign(outputs, {home});
    for (const auto& reader : problem.readers(op))
      readers[reader.output].push_back(unit_of[reader.op]);
    for (size_t output = 0; output < outputs; ++output) {
      auto& list = readers[output];
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      if (list.size() < 2) continue;
      nets[list] += std::max<int64_t>(1, problem.output_bytes(op, static_cast<int32_t>(output)));
    }
  }
  first_pin.push_back(0);
  for (const auto& [list, sum] : nets) {
    pins.insert(pins.end(), list.begin(), list.end());
    first_pin.push_back(static_cast<int32_t>(pins.size()));
    bytes.push_back(sum);
  }
}

int64_t Hypergraph::sent_bytes(const Assignment& assignment) const {
  int64_t sum = 0;
  std::vector<int32_t> devices;
  for (int32_t number = 0; number < nets(); ++number) {
    devices.clear();
    for (const int32_t unit : net(number)) devices.push_back(assignment[unit]);
    std::sort(devices.begin(), devices.end());
    const auto distinct = std::unique(devices.begin(), devices.end()) - devices.begin();
    sum += bytes[number] * (distinct - 1);
  }
  return sum;
}

}  // namespace trinity
