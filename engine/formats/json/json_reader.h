#pragma once

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trinity {

class JsonValue;

/// A parsed JSON text whose errors name the place: `file.json:3:15: not valid JSON ...` while
/// parsing, `file.json: operators[3].outputs[0].shape: expected ..., got ...` afterwards (list
/// indices count from 0, as in jq). Immutable.
///
/// A wrapper of our own around nlohmann's parser, because libraries keep no positions of parsed
/// values. Limits: nesting of kMostJsonDepth, a text of kMaxBytes (parsed JSON takes up to 30 times
/// the size of its text).
class JsonDocument {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 29;

  /// `source` is the file name in errors. Throws FileError for malformed JSON, an exceeded limit,
  /// or a repeated field in an object.
  JsonDocument(std::string_view text, std::string source);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;
  ~JsonDocument();

  JsonValue root() const;
  const nlohmann::json& json() const { return *json_; }
  const std::string& source() const { return source_; }

  /// Throws FileError "<source>: <path of the value>: <what>".
  [[noreturn]] void fail(const nlohmann::json& at, const std::string& what) const;

 private:
  std::string source_;
  struct Free {
    void operator()(nlohmann::json* json) const;
  };
  std::unique_ptr<nlohmann::json, Free> json_;
};

/// A value in a document, which must outlive it. Accessors throw FileError with file, field,
/// expected and actual value. Immutable.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& json, const JsonDocument& document)
      : json_(&json), document_(&document) {}

  bool is_object() const;
  bool is_list() const;
  bool is_text() const;
  bool is_number() const;
  /// True for a number written without fraction and exponent.
  bool is_integer() const;

  /// The field `key` of an object; `field` throws if it is missing.
  std::optional<JsonValue> find(std::string_view key) const;
  JsonValue field(std::string_view key) const;
  /// All fields of an object, sorted by name.
  std::vector<std::pair<std::string_view, JsonValue>> fields() const;
  /// Throws for fields of an object that are not in `known`, and suggests the nearest known one.
  void refuse_unknown(std::span<const char* const> known) const;

  /// All elements of a list.
  std::vector<JsonValue> elements() const;

  const std::string& text() const;
  bool boolean() const;
  /// An integer from `low` to `high`. A zero fraction is accepted ("3072.0", "1e6").
  int64_t integer(int64_t low, int64_t high) const;
  /// A number from `low` to `high`.
  double number(double low = std::numeric_limits<double>::lowest(),
                double high = std::numeric_limits<double>::max()) const;
  /// A list of integers.
  std::vector<int64_t> integers(int64_t low, int64_t high) const;

  [[noreturn]] void fail(const std::string& what) const { document_->fail(*json_, what); }
  template <class... Values>
    requires(sizeof...(Values) > 0)
  [[noreturn]] void fail(fmt::format_string<Values...> what, Values&&... values) const {
    fail(fmt::format(what, std::forward<Values>(values)...));
  }
  /// Throws fail("expected <what>, got <the value, shortened>").
  [[noreturn]] void expected(std::string_view what) const;

 private:
  const nlohmann::json* json_;
  const JsonDocument* document_;
};

/// The double nearest to the JSON number `text`; none if it is larger than every double. What reads
/// with RapidJSON takes numbers as text (kParseNumbersAsStringsFlag) and converts them here.
/// RapidJSON's own full precision mode (1.1) reads `0e213` as 6e-70, accepts `17000106052.5e308`,
/// crashes at a number of 300,000 digits, and has undefined behaviour for zeros before a zero.
std::optional<double> json_number(std::string_view text);

/// Text for an error message: in quotes, at most 60 bytes of it.
std::string in_quotes(std::string_view text);

/// suggestion() among names of any number and length; names too long to be a typo are not compared.
std::string nearest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace trinity
