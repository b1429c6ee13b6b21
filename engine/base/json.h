#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace trinity {

/// Writes JSON text sequentially. (Destroying values of nlohmann's library allocates memory and
/// aborts the process if there is none; this class holds only the text.) Entries of an object are
/// pairs of key() and a value. Bytes that are not UTF-8 become U+FFFD, non-finite numbers null. Not
/// thread-safe.
class JsonWriter {
 public:
  /// Spaces per level; negative: all on one line without spaces.
  explicit JsonWriter(int indent = -1) : indent_(indent) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_list() { return open('['); }
  JsonWriter& end_list() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& text(std::string_view value);
  JsonWriter& number(double value);
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  template <class Integer>
  JsonWriter& integer(Integer value) {
    static_assert(std::is_integral_v<Integer>);
    return raw(std::to_string(value));
  }
  /// A value that is JSON text already.
  JsonWriter& raw(std::string_view json);

  template <class Texts>
  JsonWriter& texts(const Texts& list) {
    begin_list();
    for (const auto& value : list) text(value);
    return end_list();
  }
  template <class Integers>
  JsonWriter& integers(const Integers& list) {
    begin_list();
    for (const auto value : list) integer(value);
    return end_list();
  }

  /// The text. Requires that everything is closed.
  std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void begin_value();
  void new_line();

  std::string text_;
  std::vector<bool> filled_;  // per open list or object: it has an element
  bool after_key_ = false;
  int indent_;
};

/// A text as a JSON string, with quotes.
std::string json_text(std::string_view text);

/// Destroys a value of nlohmann's library without allocating memory, which its own destructor does.
void dismantle(nlohmann::json& value) noexcept;

/// A value, initially null, that is destroyed safely.
struct TidyJson {
  nlohmann::json value;
  TidyJson() = default;
  TidyJson(TidyJson&& other) noexcept { value.swap(other.value); }
  TidyJson& operator=(TidyJson&& other) noexcept {
    value.swap(other.value);
    return *this;
  }
  ~TidyJson() { dismantle(value); }
};

/// Maximum nesting of lists and objects.
constexpr size_t kMostJsonDepth = 64;

/// Builds a value in place from the events of nlohmann's parser; only empty lists and objects are
/// ever moved. Parsing ends at nesting kMostJsonDepth and at repeated fields of an object, which
/// the library's own builder accepts. Derived classes report errors. Not thread-safe.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBuilder(nlohmann::json& root) : root_(root) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(size_t) override { return open(nlohmann::json::object()); }
  bool start_array(size_t) override { return open(nlohmann::json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override;

 protected:
  struct Open {
    nlohmann::json* container;
    std::string key;  ///< the field being read, if the container is an object
  };

  /// Open containers, outermost first.
  const std::vector<Open>& opened() const { return open_; }
  /// Called for a repeated field, whose key is open, and for too deep nesting. false ends parsing.
  virtual bool repeated() = 0;
  virtual bool too_deep() = 0;
  virtual void step() {}  ///< called before every value

 private:
  nlohmann::json* place(nlohmann::json value);
  bool add(nlohmann::json value) {
    place(std::move(value));
    return true;
  }
  bool open(nlohmann::json value);
  bool close() {
    open_.pop_back();
    return true;
  }

  nlohmann::json& root_;
  std::vector<Open> open_;
};

/// Parses a text into `into`; fields of an object may not repeat. Returns a description of the
/// error ("not valid JSON near byte 7"), if any; `into` then holds what was parsed before it.
std::optional<std::string> parse_json(std::string_view text, TidyJson& into);

}  // namespace trinity
