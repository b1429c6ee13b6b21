#pragma once

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

/// As a limit: none.
inline constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max();

class JsonValue;

/// A JSON text, parsed whole, whose errors say where: `file.json:3:15: not valid JSON ...` while
/// parsing, `file.json: operators[3].outputs[0].shape: expected ..., got ...` afterwards (positions
/// in lists count from 0, as in jq).
///
/// By hand on purpose (over nlohmann's parser): libraries keep no positions of what they parsed.
/// Limits: nesting of kMostJsonDepth, a text of kMaxBytes (parsed JSON takes up to 30 times its
/// text).
class JsonDocument {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 29;

  /// `source` stands for the file name in errors. Throws FileError for malformed JSON, a limit
  /// passed, or a field that stands twice in one object.
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

/// A value in a document, which must outlive it. Readers throw FileError naming file and field,
/// what was expected and what came.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& json, const JsonDocument& document)
      : json_(&json), document_(&document) {}

  bool is_object() const;
  bool is_list() const;
  bool is_text() const;
  bool is_number() const;
  /// A number written without fraction and exponent.
  bool is_integer() const;
  /// Whether two values are one and the same place in the document.
  bool same(const JsonValue& other) const { return json_ == other.json_; }

  /// The field `key` of an object; `field` refuses an object without it.
  std::optional<JsonValue> find(std::string_view key) const;
  JsonValue field(std::string_view key) const;
  /// All fields of an object, sorted by name.
  std::vector<std::pair<std::string_view, JsonValue>> fields() const;
  /// Refuses fields of an object that are not in `known`, with the nearest known one.
  void refuse_unknown(std::span<const char* const> known) const;

  /// All elements of a list.
  std::vector<JsonValue> elements() const;

  const std::string& text() const;
  bool boolean() const;
  /// A whole number from `low` to `high`. A fraction of zero is accepted ("3072.0", "1e6").
  int64_t integer(int64_t low, int64_t high) const;
  /// A number from `low` to `high`.
  double number(double low = std::numeric_limits<double>::lowest(),
                double high = std::numeric_limits<double>::max()) const;
  /// A list of whole numbers.
  std::vector<int64_t> integers(int64_t low, int64_t high) const;

  [[noreturn]] void fail(const std::string& what) const { document_->fail(*json_, what); }
  /// fail("expected <what>, got <the value, shortened>").
  [[noreturn]] void expected(std::string_view what) const;

 private:
  const nlohmann::json* json_;
  const JsonDocument* document_;
};

/// The double nearest to a number of JSON that is all of `text`; none where it is larger than every
/// double. Readers over RapidJSON take numbers as texts (kParseNumbersAsStringsFlag) and ask here:
/// its own full precision (1.1) reads `0e213` as 6e-70, takes `17000106052.5e308` for a number,
/// crashes at a number of 300,000 digits, and counts the zeros before a zero, which C++ leaves
/// undefined.
std::optional<double> json_number(std::string_view text);

/// Text as an error message shows it: in quotes, at most 60 bytes of it.
std::string in_quotes(std::string_view text);

/// suggestion() among names of any number and length: those too long to be a slip of the pen are
/// not compared.
std::string nearest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace trinity
