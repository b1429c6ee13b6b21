#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace trinity {

/// JSON as text, from front to back. (Values of nlohmann's library ask for memory when they are
/// destroyed and end the process where there is none; here there is nothing but the text.) What
/// stands in an object comes in pairs, a key() and what it means. Bytes that are no UTF-8 become
/// U+FFFD, numbers that are not finite null.
class JsonWriter {
 public:
  /// Spaces of a level; less than 0: all on one line, without any.
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
  /// A value that is JSON already.
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

  /// The text, once everything is closed.
  std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void begin_value();
  void new_line();

  std::string text_;
  std::vector<bool> filled_;  // of every open list or object: whether something stands in it
  bool after_key_ = false;
  int indent_;
};

/// A text in quotes, as JSON has it.
std::string json_text(std::string_view text);

/// Takes a value of nlohmann's apart. Its own destructor asks for memory and ends the process where
/// there is none.
void dismantle(nlohmann::json& value) noexcept;

/// A value, at first null, that is taken apart in the end.
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

/// Lists and objects nest this deep at most.
constexpr size_t kMostJsonDepth = 64;

/// Builds a value in place from what nlohmann's parser meets: what is moved into it is never a list
/// or an object with anything in it. Nesting ends at kMostJsonDepth, and no field may stand twice
/// in an object, which the library's own builder does not look at. Who derives says what a fault
/// is.
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
    std::string key;  ///< the field being read, where the container is an object
  };

  /// What is open, outermost first.
  const std::vector<Open>& opened() const { return open_; }
  /// The field whose key is open stands twice; lists and objects nest too deep. false ends parsing.
  virtual bool repeated() = 0;
  virtual bool too_deep() = 0;
  virtual void step() {}  ///< before every value

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

/// Parses a text into `into`; no field may stand twice in an object. Returns what is wrong with it
/// in words ("not valid JSON near byte 7"), if anything; `into` then holds what came before.
std::optional<std::string> parse_json(std::string_view text, TidyJson& into);

}  // namespace trinity
