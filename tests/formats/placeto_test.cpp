// The published simulator's step times on PipeDream profiles, measured by running the authors'
// code (see the data folder's ORIGIN.md); skipped where the data are absent.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "formats/pipedream.h"
#include "simulator/simulator.h"
#include "support/build.h"

using namespace trinity;

namespace {

const std::string kData = std::string(TRINITY_SOURCE_DIR) + "/../shared/data";

/// The profile as that simulator takes it: forward plus backward as one operator, one tensor each.
/// Times of input nodes are kept, as it keeps them.
std::shared_ptr<const Graph> one_operator_per_node(const std::string& text,
                                                   std::vector<std::string>& file_order) {
  const auto forward = parse_pipedream(text, "profile", "profile");
  test::GraphMaker make("profile");
  std::map<std::string, double> input_time_s;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (text[at] == '\t') break;
    const auto line = text.substr(at, text.find('\n', at) - at);
    const auto id = line.substr(0, line.find(' '));
    file_order.push_back(id);
    const auto value = [&](const char* name) {
      return std::stod(line.substr(line.find(name) + std::string(name).size() + 1));
    };
    input_time_s[id] = (value("forward_compute_time") + value("backward_compute_time")) * 1e-3;
    if (text.find('\n', at) == std::string::npos) break;
  }
  std::map<std::string, int> tensor, op;
  // That simulator breaks ties by the text of node names.
  auto by_name = file_order;
  std::sort(by_name.begin(), by_name.end());
  for (const auto& id : by_name) {
    const auto& node = forward.op(forward.find(id));
    op[id] = make.op(id, input_time_s[id]);
    tensor[id] = make.output(op[id], forward.tensor(node.outputs[0]).bytes);
  }
  for (const auto& node : forward.operators())
    for (const int32_t input : node.inputs)
      make.read(op[node.name], tensor[forward.op(forward.tensor(input).producer).name]);
  return make.share();
}

}  // namespace

TEST_CASE("compat mode gives the published simulator's step times on real profiles" *
          doctest::skip(!std::filesystem::exists(kData + "/placeto-sim"))) {
  for (const char* name :
       {"alexnet", "vgg16", "gnmt", "resnet50", "inception_v3", "nasnetamobile"}) {
    const auto expected = nlohmann::json::parse(
        read_file(fmt::format("{}/placeto-sim/{}.expected.json", kData, name)));
    std::vector<std::string> file_order;
    const auto graph = one_operator_per_node(
        read_file(fmt::format("{}/pipedream/{}.graph.txt", kData, name)), file_order);
    int compared = 0;
    for (const auto& entry : expected["cases"]) {
      const int devices = entry["devices"];
      const std::string digits = entry["placement"];
      std::vector<int32_t> placement(digits.size());
      for (size_t i = 0; i < digits.size(); ++i)
        placement[static_cast<size_t>(graph->find(file_order[i]))] = digits[i] - '0';
      auto rules = SimulationRules::compat();
      rules.last_event = false;      // these files state the last operator's end,
      rules.dead_after_free = true;  // and were made with a pause after every operator
      const Problem problem(graph, test::uniform_cluster(devices, 7600e6, 0), rules);
      Metrics metrics;
      Simulator(problem).run(placement, metrics);
      const double makespan_us = entry["makespan_us"];
      // Transfers are rounded to whole nanoseconds here. gnmt has operators that cost nothing; at
      // one instant ours follow operator numbers and that simulator's its event order, which moves
      // a step by a pause at most.
      const double tolerance_us = std::string(name) == "gnmt" ? 5.8 : 0.1;
      CHECK_MESSAGE(
          std::abs(static_cast<double>(metrics.step_time_ns) / 1e3 - makespan_us) <= tolerance_us,
          std::string(name), ", ", devices, " devices, case ", compared);
      ++compared;
    }
    CHECK(compared > 0);
  }
}
