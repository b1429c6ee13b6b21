#include <doctest/doctest.h>

#include "base/error.h"
#include "formats/instances/pipedream.h"
#include "support/damage.h"

using namespace trinity;

namespace {

const char* const kProfile =
    "node2 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348, "
    "activation_size=[100.0; 20.0; 3.0], parameter_size=503.000 -- stage_id=1\n"
    "node1 -- Input0 -- forward_compute_time=635.902, backward_compute_time=0.000, "
    "activation_size=154.0, parameter_size=0.000\n"
    "\tnode1 -- node2\n"
    "\tnode1 -- node2";

}  // namespace

TEST_CASE("a profile is read: lists summed, loader time dropped, edges once, any order of nodes") {
  const auto graph = parse_pipedream(kProfile, "x.txt", "x");
  REQUIRE(graph.operator_count() == 2);
  CHECK(graph.op(0).name == "node1");
  CHECK(graph.op(0).measured_time_s == 0);
  const auto& lstm = graph.op(1);
  CHECK(lstm.type == "LSTM");
  CHECK(lstm.measured_time_s == doctest::Approx(3.190e-3));
  CHECK(lstm.measured_backward_time_s == doctest::Approx(5.348e-3));
  CHECK(graph.tensor(lstm.outputs[0]).bytes == 123);
  CHECK(lstm.parameter_bytes() == 503);
  CHECK(graph.edge_count() == 1);
}

TEST_CASE("every cut-off or damaged profile gives one error that names the place, or a graph") {
  const std::string text = kProfile;
  const auto error_of = [](const std::string& damaged) {
    return test::message_of<FileError>([&] { parse_pipedream(damaged, "x.txt", "x"); });
  };
  int refused = 0;
  for (size_t length = 0; length < text.size(); ++length) {
    const auto error = error_of(text.substr(0, length));
    CHECK((error == "no error" || error.starts_with("x.txt")));
    refused += error != "no error";
  }
  CHECK(refused > 200);
  test::check_damaged(text, error_of, text.size());
}
