// Step times of a textbook event loop on graphs of the published sizes (see the data folder's
// ORIGIN.md), to the nanosecond; skipped where the data are absent.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "data/gzip.h"
#include "support/cases.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const std::string kData = test::shared_data("synthetic");

std::string read_gzip(const std::string& path) { return decompressed(path, read_file(path)); }

/// "N M", N lines "cost_ns output_bytes", M lines "source target". One output tensor an operator.
std::shared_ptr<const Graph> read_graph(const std::string& path) {
  std::istringstream text(read_gzip(path));
  int operators = 0, edges = 0;
  text >> operators >> edges;
  test::GraphMaker make("synthetic");
  std::vector<int> tensor;
  for (int o = 0; o < operators; ++o) {
    int64_t cost_ns = 0, bytes = 0;
    text >> cost_ns >> bytes;
    const int op = make.op("op" + std::to_string(o), static_cast<double>(cost_ns) * 1e-9);
    tensor.push_back(make.output(op, bytes));
  }
  for (int e = 0; e < edges; ++e) {
    int from = 0, to = 0;
    text >> from >> to;
    make.read(to, tensor.at(static_cast<size_t>(from)));
  }
  REQUIRE_FALSE(text.fail());
  return make.share();
}

std::vector<int32_t> digits(const std::string& text) {
  std::vector<int32_t> placement;
  for (const char digit : text) placement.push_back(digit - '0');
  return placement;
}

/// The problem of every graph of the file, by name.
std::map<std::string, Problem> read_problems(const nlohmann::json& expected) {
  const double latency_s = expected["latency_ns"].get<double>() * 1e-9;
  const auto cluster = test::uniform_cluster(
      expected["devices"], expected["bytes_per_ns"].get<double>() * 1e9, latency_s);
  std::map<std::string, Problem> problems;
  for (const auto& entry : expected["cases"]) {
    const std::string name = entry["graph"];
    if (!problems.contains(name))
      problems.try_emplace(name, read_graph(kData + "/" + name + ".gz"), cluster,
                           SimulationRules::standard(*cluster));
  }
  return problems;
}

}  // namespace

TEST_CASE("step times of a textbook loop on graphs of the published sizes, to the nanosecond" *
          test::shared) {
  const auto expected = nlohmann::json::parse(read_gzip(kData + "/expected.json.gz"));
  const auto problems = read_problems(expected);
  CHECK(expected["cases"].size() == 24);
  for (const auto& entry : expected["cases"]) {
    CAPTURE(entry["graph"].get<std::string>());
    const auto& problem = problems.at(entry["graph"]);
    const int64_t makespan_ns = entry["makespan_ns"];
    const auto placement = digits(entry["placement"]);
    REQUIRE(placement.size() == static_cast<size_t>(problem.operators()));
    Simulator simulator(problem);
    Metrics metrics, again;
    Timeline timeline;
    simulator.run(placement, metrics);
    CHECK(metrics.step_time_ns == makespan_ns);
    simulator.run(placement, again, &timeline);
    CHECK(again == metrics);
    // The event loop, which takes what the sweep cannot, gives the same from the order
    // recorded.
    const auto order = test::order_of(problem, timeline);
    simulator.run(Plan{placement, &order}, again);
    CHECK(again == metrics);
  }
}
