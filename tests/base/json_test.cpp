#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"

using namespace trinity;

namespace {

/// Both writers get the same text, but that characters which command a terminal (DEL,
/// C1, marks of direction) are escaped.
template <class Write>
void same_text(int indent, const nlohmann::ordered_json& value, Write write) {
  JsonWriter json(indent);
  write(json);
  auto expected = value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
  using Pair = std::pair<const char*, const char*>;
  for (const auto& [raw, escaped] : {Pair{"\x7f", "\\u007f"},
                                     Pair{"\xc2\x9b", "\\u009b"},
                                     Pair{"\xe2\x80\xae", "\\u202e"}})
    for (size_t at = 0; (at = expected.find(raw)) != std::string::npos;)
      expected.replace(at, std::string_view(raw).size(), escaped);
  CHECK(json.take() == expected);
}

std::string fault_of(std::string_view text) {
  TidyJson value;
  return parse_json(text, value).value_or("");
}

}  // namespace

TEST_CASE("JSON is written as nlohmann's library writes it, without commands of terminals") {
  const std::string odd = "a\"\\\n\x01\x7f\xc3\xa9 \xc2\x9b\xe2\x80\xae \xff end";
  nlohmann::ordered_json value;
  value["texts"] = {"x", odd, ""};
  value["none"] = nlohmann::ordered_json::object();
  value["empty"] = nlohmann::ordered_json::array();
  value[odd] = {{"n", 7}, {"x", 0.1}, {"large", 1e300}, {"b", true}};
  value["infinite"] = std::numeric_limits<double>::infinity();
  value["least"] = std::numeric_limits<int64_t>::min();
  value["most"] = std::numeric_limits<uint64_t>::max();
  for (const int indent : {-1, 0, 1, 2})
    same_text(indent, value, [&](JsonWriter& json) {
      json.begin_object().key("texts").texts(std::vector<std::string>{"x", odd, ""});
      json.key("none").begin_object().end_object();
      json.key("empty").begin_list().end_list();
      json.key(odd).begin_object().key("n").integer(7).key("x").number(0.1);
      json.key("large").number(1e300).key("b").boolean(true).end_object();
      json.key("infinite").number(std::numeric_limits<double>::infinity());
      json.key("least").integer(std::numeric_limits<int64_t>::min());
      json.key("most").integer(std::numeric_limits<uint64_t>::max()).end_object();
    });
}

TEST_CASE("JSON is parsed to what it says, or to what is wrong with it") {
  const std::string text = R"({"a": [1, -2, 3.5, "x", null, true, {"b": {}}], "c": []})";
  TidyJson value;
  CHECK_FALSE(parse_json(text, value));
  CHECK(value.value == nlohmann::json::parse(text));
  CHECK(fault_of("{") == "not valid JSON near byte 2");
  CHECK(fault_of("[1, 1e999]") == "not valid JSON (a number is too large)");
  CHECK(fault_of(R"({"a": 1, "b": {"a": 2, "a": 3}})") ==
        R"(field "a" is repeated in its object)");
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(fault_of(nested(kMostJsonDepth)) == "");
  CHECK(fault_of(nested(kMostJsonDepth + 1)) == "nested more than 64 levels deep");
  CHECK(fault_of(nested(1'000'000)) == "nested more than 64 levels deep");
}
