#include "formats/instances/doppler.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "formats/read_model.h"
#include "support/damage.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const char* const kText = "5\n0, 4\n0,0, 1, 0\n1,2, 2, 1\n10,20\n30,40\n50,0\n\n";

void refuses(const std::string& text, const std::string& expected) {
  CAPTURE(text);
  try {
    parse_doppler(text, "x.txt", "x");
    FAIL("was read");
  } catch (const FileError& error) {
    CHECK(std::string(error.what()) == "x.txt:" + expected);
  }
}

}  // namespace

TEST_CASE("a graph of doppler is read: runs of digits, repeated edges apart, the file's order") {
  const auto graph = parse_doppler(kText, "x.txt", "x");
  REQUIRE(graph.operator_count() == 3);
  CHECK(graph.edge_count() == 4);
  CHECK(graph.op(0).name == "0");
  CHECK(graph.op(1).measured_time_s == doctest::Approx(30e-9));
  CHECK(graph.op(0).outputs.size() == 2);  // 0 -> 1 twice
  CHECK(graph.tensor(graph.op(0).outputs[1]).bytes == 20);
  CHECK(std::get<int64_t>(graph.op(2).attributes.at("file_position")) == 3);
  using Numbers = std::vector<int64_t>;
  CHECK(std::get<Numbers>(graph.op(1).attributes.at("input_positions")) == Numbers{1, 4});
  CHECK(std::get<Numbers>(graph.op(2).attributes.at("input_positions")) == Numbers{2, 3});
  CHECK(is_doppler(kText));
  CHECK(!is_doppler("node1 -- Input -- forward_compute_time=1"));
  CHECK(!is_doppler(""));
  const auto imported = read_model(test::data("doppler/ties.txt"));
  CHECK(imported.format == "Doppler graph");
  CHECK(imported.whole_step);
  CHECK(imported.graph.name() == "ties");
  CHECK(imported.graph.operator_count() == 8);
}

TEST_CASE("what is wrong with a graph of doppler is said in a sentence") {
  refuses("", "1: expected the number of nodes, got the end of the file");
  refuses("0\n", "1: number of nodes: expected at least 1, got 0");
  refuses("99999999999999999999\n", "1: number of nodes: expected at most 16777216, got "
                                    "99999999999999999999");
  refuses("5\n", "2: expected a list of ids of input nodes, got the end of the file");
  refuses("2\n1, 2\n", "2: expected fewer input nodes than the 2 nodes of line 1, got 2");
  refuses("2\n\n0, x\n", "3: sources of edges: expected numbers with commas, got 'x'");
  refuses("2\n\n0, -1\n", "3: sources of edges: expected numbers with commas, got '-1'");
  refuses("2\n\n0, 2\n", "3: source of edge 2: expected a node from 0 to 1, got 2");
  refuses("2\n\n0\n1, 1\n", "4: expected 1 targets, one for each source, got 2");
  refuses("2\n\n0\n1\n1,1\n",
          "6: expected line 2 of 2 with 'compute,communication', got the end of the file");
  refuses("2\n\n0\n1\n1\n", "5: operator 0: expected 'compute,communication', got '1'");
  refuses("2\n\n0\n1\n1,2.5\n", "5: communication: expected a whole number, got '2.5'");
  refuses("2\n\n0\n1\n1,-2\n", "5: communication: expected a whole number, got '-2'");
  refuses("2\n\n0\n1\n1000000000000000,2\n",
          "5: compute: expected at most 999999999999999, got 1000000000000000");
  refuses("2\n\n0\n1\n1,2\n1,2\n1,2\n",
          "7: expected the end of the file after 2 lines of operators, got '1,2'");
  refuses("2\n\n0\n0\n1,2\n1,2\n", "4: edge 1 goes from node 0 to itself");
  CHECK_THROWS_WITH_AS(parse_doppler("2\n\n0, 1\n1, 0\n1,2\n1,2\n", "x.txt", "x"),
                       doctest::Contains("x.txt: "), FileError);
}

TEST_CASE("every cut-off or damaged graph of doppler gives one error that names the place") {
  const auto error_of = [](const std::string& text) {
    return test::message_of<FileError>([&] { parse_doppler(text, "x.txt", "x"); });
  };
  test::check_damaged(kText, error_of, 4);  // "50," and white space after it
}
