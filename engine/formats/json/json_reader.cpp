#include "formats/json/json_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"

namespace trinity {
namespace {

using Json = nlohmann::json;

/// A field's name in a path: `name`, or quoted if it is not a plain word.
std::string key_text(std::string_view key) {
  const auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  };
  const bool plain = !key.empty() && key.size() <= 60 && std::all_of(key.begin(), key.end(), word);
  return plain ? std::string(key) : in_quotes(key);
}

void add_key(std::string& path, std::string_view key) {
  if (!path.empty()) path += '.';
  path += key_text(key);
}

/// Builds the document; errors name the position.
class Builder : public JsonBuilder {
 public:
  Builder(std::string_view text, const std::string& source, Json& root)
      : JsonBuilder(root), text_(text), source_(source) {}

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const size_t end = std::min(position, text_.size());
    const auto before = text_.substr(0, end > 0 ? end - 1 : 0);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto start = before.rfind('\n');
    const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
    // The text for an empty document differs between versions of nlohmann's library.
    throw FileError("{}:{}:{}: not valid JSON ({})", source_, line, column,
                    text_.empty() ? "it is empty" : reason(error.what()));
  }

 protected:
  bool repeated() override {
    throw FileError("{}: {}: this field is repeated in its object", source_, path());
  }
  bool too_deep() override {
    throw FileError("{}: {}: nested more than {} levels deep", source_, path(), kMostJsonDepth);
  }
  void step() override { stop_.step(); }

 private:
  /// nlohmann's message without its number and position, shortened.
  static std::string reason(std::string_view text) {
    for (const std::string_view before : {"column ", "] "}) {
      const auto at = text.find(before);
      if (at == std::string_view::npos) continue;
      text.remove_prefix(at + before.size());
      if (const auto colon = text.find(": "); before == "column " && colon < 20)
        text.remove_prefix(colon + 2);
      break;
    }
    return text.size() <= 120 ? std::string(text) : std::string(text.substr(0, 117)) + "...";
  }

  std::string path() const {
    std::string text;
    for (size_t i = 0; i < opened().size(); ++i) {
      const auto& [container, key] = opened()[i];
      const size_t last =
          i + 1 < opened().size() ? 1 : 0;  // the open element is in its list already
      if (container->is_object())
        add_key(text, key);
      else
        text += fmt::format("[{}]", container->size() - last);
    }
    return text.size() <= 200 ? text : text.substr(0, 197) + "...";
  }

  std::string_view text_;
  const std::string& source_;
  StopPoll stop_;
};

/// Extends `path`, the path of `json`, to the value at address `wanted` inside; false if it is not
/// there.
bool find_path(const Json& json, const Json* wanted, std::string& path) {
  if (&json == wanted) return true;
  const size_t length = path.size();
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      path += fmt::format("[{}]", i);
      if (find_path(json[i], wanted, path)) return true;
      path.resize(length);
    }
  } else if (json.is_object()) {
    for (const auto& entry : json.items()) {
      add_key(path, entry.key());
      if (find_path(entry.value(), wanted, path)) return true;
      path.resize(length);
    }
  }
  return false;
}

std::string shown(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return json.empty() ? "an empty list" : "a list";
  if (json.is_string()) return in_quotes(json.get_ref<const std::string&>());
  return json.dump();
}

}  // namespace

std::optional<double> json_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return text == "-0" ? 0 : value;  // an integer zero has no sign
  // Out of a double's range; from_chars does not distinguish the two ends.
  const auto json = Json::parse(text, nullptr, false);
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

std::string in_quotes(std::string_view text) {
  const bool cut = text.size() > 60;
  const auto part = std::string(text.substr(0, cut ? 57 : 60)) + (cut ? "..." : "");
  const auto json = Json(part).dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("'{}'", std::string_view(json).substr(1, json.size() - 2));
}

std::string nearest(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr size_t kLongest = 100;
  if (name.size() > kLongest) return "";
  const size_t reach = 2 + name.size() / 4;
  std::vector<std::string> near;
  for (const auto candidate : candidates)
    if (candidate.size() <= name.size() + reach && name.size() <= candidate.size() + reach)
      near.emplace_back(candidate);
  return suggestion(name, near);
}

JsonDocument::JsonDocument(std::string_view text, std::string source)
    : source_(std::move(source)), json_(new Json) {
  if (text.size() > kMaxBytes)
    throw FileError("{}: {} bytes of JSON, more than {} are not supported", source_, text.size(), kMaxBytes);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Builder builder(text, source_, *json_);
  Json::sax_parse(text.begin(), text.end(), &builder);
}

JsonDocument::~JsonDocument() = default;

void JsonDocument::Free::operator()(Json* json) const {
  dismantle(*json);
  delete json;
}

JsonValue JsonDocument::root() const { return {*json_, *this}; }

void JsonDocument::fail(const Json& at, const std::string& what) const {
  constexpr size_t kLongest = 1000;  // names from the file may be long
  std::string path;
  find_path(*json_, &at, path);
  const auto text = path.empty() ? what : fmt::format("{}: {}", path, what);
  throw FileError("{}: {}", source_, text.size() <= kLongest ? text : text.substr(0, kLongest) + "...");
}

bool JsonValue::is_object() const { return json_->is_object(); }
bool JsonValue::is_list() const { return json_->is_array(); }
bool JsonValue::is_text() const { return json_->is_string(); }
bool JsonValue::is_number() const { return json_->is_number(); }
bool JsonValue::is_integer() const { return json_->is_number_integer(); }

void JsonValue::expected(std::string_view what) const {
  fail("expected {}, got {}", what, shown(*json_));
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!json_->is_object()) expected("an object");
  const auto found = json_->find(key);
  if (found == json_->end()) return std::nullopt;
  return JsonValue(*found, *document_);
}

JsonValue JsonValue::field(std::string_view key) const {
  const auto found = find(key);
  if (found) return *found;
  std::string others;
  for (auto it = json_->begin(); it != json_->end() && others.size() < 100; ++it)
    others += (others.empty() ? "; there are " : ", ") + key_text(it.key());
  fail("field '{}' is missing{}", key, others);
}

std::vector<std::pair<std::string_view, JsonValue>> JsonValue::fields() const {
  if (!json_->is_object()) expected("an object");
  std::vector<std::pair<std::string_view, JsonValue>> all;
  for (auto it = json_->begin(); it != json_->end(); ++it)
    all.emplace_back(it.key(), JsonValue(it.value(), *document_));
  return all;
}

void JsonValue::refuse_unknown(std::span<const char* const> known) const {
  if (!json_->is_object()) expected("an object");
  for (auto it = json_->begin(); it != json_->end(); ++it) {
    const auto& key = it.key();
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::vector<std::string_view> names(known.begin(), known.end());
    fail("unknown field {}{} (known: {})", in_quotes(key), nearest(key, names), fmt::join(known, ", "));
  }
}

std::vector<JsonValue> JsonValue::elements() const {
  if (!json_->is_array()) expected("a list");
  std::vector<JsonValue> all;
  all.reserve(json_->size());
  for (const auto& element : *json_) all.emplace_back(element, *document_);
  return all;
}

const std::string& JsonValue::text() const {
  if (!json_->is_string()) expected("a string");
  return json_->get_ref<const std::string&>();
}

bool JsonValue::boolean() const {
  if (!json_->is_boolean()) expected("true or false");
  return json_->get<bool>();
}

int64_t JsonValue::integer(int64_t low, int64_t high) const {
  const auto refuse = [&] { expected(fmt::format("a whole number from {} to {}", low, high)); };
  if (!json_->is_number()) refuse();
  int64_t value = 0;
  if (json_->is_number_float()) {
    const auto number = json_->get<double>();
    if (!(std::abs(number) <= 0x1p53) || std::trunc(number) != number) refuse();
    value = static_cast<int64_t>(number);
  } else {
    if (json_->is_number_unsigned() &&
        json_->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      refuse();
    value = json_->get<int64_t>();
  }
  if (value < low || value > high) refuse();
  return value;
}

double JsonValue::number(double low, double high) const {
  if (!json_->is_number()) expected("a number");
  const auto value = json_->get<double>();
  if (value >= low && value <= high) return value;
  expected(high == std::numeric_limits<double>::max()
               ? fmt::format("a number of at least {}", low)
               : fmt::format("a number from {} to {}", low, high));
}

std::vector<int64_t> JsonValue::integers(int64_t low, int64_t high) const {
  if (!json_->is_array()) expected("a list of whole numbers");
  std::vector<int64_t> values;
  for (const auto& element : elements()) values.push_back(element.integer(low, high));
  return values;
}

}  // namespace trinity
