// The IOPDDL contest's JSON: its example, gzip, and what is said about files that are not in order.
#include "formats/instances/selection_json.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "selection/selection_solver.h"
#include "support/damage.h"

using namespace trinity;

namespace {

// The contest's example, with the two selections that its text prices.
const std::string kExample = R"({ "problem": { "name": "example",
  "nodes": { "intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
    "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
    "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]] },
  "edges": { "nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
    "costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]] },
  "usage_limit": 50 } })";

using test::replaced;

/// The message about the example with one piece replaced.
std::string refusal(const std::string& from, const std::string& to) {
  return test::message_of<FileError>(
      [&] { parse_selection(replaced(kExample, from, to), "x.json"); });
}

std::string temporary(const char* name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

}  // namespace

TEST_CASE("the contest's example") {
  const auto problem = parse_selection(kExample, "example.json");
  CHECK(problem.name == "example");
  CHECK(problem.nodes() == 5);
  CHECK(problem.edges.size() == 5);
  CHECK(problem.usage_limit == 50);
  const int32_t dear[] = {0, 0, 2, 0, 0}, cheap[] = {0, 0, 2, 1, 0};
  CHECK(score_selection(problem, dear).cost == 545);
  CHECK(score_selection(problem, cheap).cost == 445);
  ThreadPool pool(1);
  const auto result = solve_selection(problem, {}, pool);
  CHECK(result.feasible);
  CHECK(result.optimal);
  CHECK(result.cost == 445);  // the other selection of 415 takes 55
}

TEST_CASE("fields in any order, unknown ones skipped, no limit, no usages, numbers as fractions") {
  const auto problem = parse_selection(
      R"({"source": {"a": [1, {"b": null}]}, "problem": {"edges": {"costs": [[1.5, 1e18, -2, 0]],
          "nodes": [[1.0, 0]]}, "note": "x", "usage_limit": null,
          "nodes": {"op": ["a", "b"], "costs": [[0, 1], [2e0, 3]]}}})",
      "x.json");
  CHECK_FALSE(problem.usage_limit.has_value());
  CHECK(problem.edges[0].from == 1);
  CHECK(problem.edge_table(0)[2] == -2);
  CHECK(problem.usage(1)[1] == 0);
}

TEST_CASE("numbers are the nearest doubles, whatever their exponents") {
  // RapidJSON's own reading of the first came to 6e-70, of the second to -6e-269 (json_number).
  const auto first_cost = [](const std::string& text) {
    return parse_selection(replaced(kExample, "[[15]", "[[" + text + "]"), "x.json").costs(0)[0];
  };
  CHECK(first_cost("0e213") == 0);
  CHECK(first_cost("0e+308") == 0);
  CHECK(first_cost("0.000e-65") == 0);
  CHECK_FALSE(std::signbit(first_cost("-0")));
  CHECK(first_cost("1e-400") == 0);
  CHECK(first_cost("5e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(first_cost("0.3") == 0.3);
  CHECK(first_cost("9007199254740993") == 9007199254740992.0);
  CHECK(first_cost("9007199254740993.0000000000000000000000001") == 9007199254740994.0);
  CHECK(refusal("[[15]", "[[17000106052.5e308]") ==
        "x.json: problem.nodes.costs[0][0]: the number is too large, or longer than 4096 "
        "characters");
  // A number is met whole wherever pieces of the text end.
  for (const size_t spaces : {262100, 262120, 262130, 262134, 262136, 262138, 262140})
    CHECK(first_cost(std::string(spaces - kExample.find("15],"), ' ') + "-12345.6789e-3") ==
          -12345.6789e-3);
  CHECK(first_cost("0." + std::string(4000, '0') + "1") == 0);
  CHECK(refusal("[[15]", "[[0." + std::string(300'000, '0') + "1]").find("longer than 4096") !=
        std::string::npos);
}

TEST_CASE("what is wrong is said with file, field, expectation and value") {
  CHECK(refusal("\"name\": \"example\"", "\"name\": 3") ==
        "x.json: problem.name: expected a string, got a number");
  CHECK(refusal("\"usage_limit\": 50", "\"usage_limit\": -1") ==
        "x.json: problem.usage_limit: expected a whole number from 0 to 2^53, got -1");
  CHECK(refusal("\"usage_limit\"", "\"usage_limits\"") ==
        "x.json: problem.usage_limits: unknown field, did you mean 'usage_limit'?");
  CHECK(refusal("\"costs\": [[15]", "\"cost\": [[15]") ==
        "x.json: problem.nodes.cost: unknown field, did you mean 'costs'?");
  CHECK(refusal("[85, 75]", "[85, \"75\"]") ==
        "x.json: problem.nodes.costs[3][1]: expected a number, got '75'");
  CHECK(refusal("[85, 75]", "85") ==
        "x.json: problem.nodes.costs[3]: expected a list, got a number");
  CHECK(refusal("[85, 75]", "[]") ==
        "x.json: problem.nodes.usages[3]: expected 0 entries (one per strategy, as in "
        "problem.nodes.costs), got 2");
  CHECK(refusal("[10, 10], [15]]", "[10, 10]]") ==
        "x.json: problem.nodes.usages: expected 5 lists (one for each node, as in "
        "problem.nodes.costs), "
        "got 4");
  CHECK(refusal("[25, 25]", "[25, -25]") ==
        "x.json: problem.nodes.usages[1][1]: expected a whole number from 0 to 2^53, got -25");
  CHECK(refusal("[25, 25]", "[25, 2.5]") ==
        "x.json: problem.nodes.usages[1][1]: expected a whole number from 0 to 2^53, got 2.5");
  CHECK(refusal("[30, 70]", "[30]") ==
        "x.json: problem.nodes.intervals[0]: expected [start, end], got 1 numbers");
  CHECK(refusal("[30, 70]", "[70, 30]") ==
        "x.json: problem.nodes.intervals[0]: [70, 30) ends before it starts");
  CHECK(refusal("[3, 4]", "[3, 5]") ==
        "x.json: problem.edges.nodes[4]: node 5 does not exist (there are 5, counted from 0)");
  CHECK(refusal("[70, 60]", "[70]") ==
        "x.json: problem.edges.costs[4]: expected 2 entries (2 strategies of node 3 times 1 of "
        "node 4), got 1");
  CHECK(refusal(", [70, 60]", "") ==
        "x.json: problem.edges.costs: expected 5 lists (one for each edge, as in "
        "problem.edges.nodes), "
        "got 4");
  CHECK(refusal("\"edges\": {", "\"edges\": 7, \"edge\": {") ==
        "x.json: problem.edges: expected an object, got a number");
  CHECK(refusal("\"usage_limit\": 50", "\"nodes\": {}") ==
        "x.json: problem.nodes: this field is repeated in its object");
  CHECK(refusal("[70, 60]", "[70, 60}").starts_with("x.json:6:"));
  CHECK(refusal("[70, 60]", "[70, 1e999]").find("not valid JSON") != std::string::npos);
  CHECK_THROWS_WITH_AS(parse_selection("[]", "x.json"), "x.json: expected an object, got a list",
                       FileError);
  CHECK_THROWS_WITH_AS(parse_selection("{}", "x.json"), "x.json: field 'problem' is missing",
                       FileError);
  const std::string deep = "{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}";
  CHECK_THROWS_WITH_AS(parse_selection(deep, "x.json"), doctest::Contains("nested"), FileError);
}

TEST_CASE("any cut or changed byte gives a problem or an error, never a crash") {
  test::check_damaged(kExample, [](const std::string& text) {
    return test::message_of<FileError>([&] { parse_selection(text, "x.json"); });
  }, 0);
}

TEST_CASE("a text longer than the window that is read at a time") {
  constexpr size_t kWindow = size_t{1} << 18;
  const auto expected = parse_selection(kExample, "x.json");
  for (size_t i = 0; i < kExample.size(); i += 7) {  // its border falls on every seventh character
    const auto problem = parse_selection(std::string(kWindow - i, ' ') + kExample, "x.json");
    REQUIRE(problem.edge_costs == expected.edge_costs);
    REQUIRE(problem.usages == expected.usages);
  }
  const std::string note(2 * kWindow, 'x');
  CHECK(parse_selection(replaced(kExample, "\"example\"", "\"" + note + "\""), "x.json").name ==
        note);
  CHECK_THROWS_WITH_AS(parse_selection(std::string(kWindow, '\n') + " {]", "x.json"),
                       "x.json:262145:3: not valid JSON (expected a field's name in quotes)",
                       FileError);
  CHECK(refusal("\"name\": \"example\"", "\"note\": \"" + std::string(5 << 18, 'x') + "\"")
            .ends_with("(the string is too long)"));
  CHECK(refusal("15", std::string(5000, '1')).ends_with("(the number is too large)"));
  const std::string digits = "1" + std::string(300, '0');
  CHECK(parse_selection(replaced(kExample, "[15]", "[" + digits + "]"), "x.json").node_costs[0] ==
        1e300);
  CHECK(refusal("50 }", "50 }}").ends_with("(expected the end of the text)"));
  CHECK(refusal("50 } }", std::string("50 } }\0", 7)).ends_with("(expected the end of the text)"));
  CHECK(refusal("50 } }", "50").ends_with("(the text ends early)"));
}

TEST_CASE("gzip and plain files") {
  const auto plain = temporary(".json"), packed = temporary(".json.gz");
  write_file(plain, kExample);
  auto* out = gzopen(packed.c_str(), "wb");
  REQUIRE(out);
  gzwrite(out, kExample.data(), static_cast<unsigned>(kExample.size()));
  gzclose(out);
  CHECK(read_selection(plain).edge_costs == read_selection(packed).edge_costs);
  double share = 0;
  read_selection(plain, [&share](double now) {
    CHECK(now >= share);
    share = now;
  });
  CHECK(share == 1);
  auto bytes = read_file(packed);
  write_file(packed, bytes.substr(0, bytes.size() - 12));
  CHECK_THROWS_AS(read_selection(packed), FileError);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  write_file(packed, bytes);
  CHECK_THROWS_AS(read_selection(packed), FileError);
  CHECK_THROWS_AS(read_selection(temporary("absent")), FileError);
  std::filesystem::remove(plain);
  std::filesystem::remove(packed);
}
