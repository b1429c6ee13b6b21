#include "base/json.h"

#include <fmt/format.h>

namespace trinity {
namespace {

using Json = nlohmann::json;

/// Builds a value in place: what is moved into it is never a list or an object with anything in it.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(Json& root) : root_(root) {}

  const std::optional<std::string>& fault() const { return fault_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    key_ = std::move(value);
    if (!open_.back()->contains(key_)) return true;
    fault_ = fmt::format("the field {} stands twice in its object",
                         Json(key_).dump(-1, ' ', false, Json::error_handler_t::replace));
    return false;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;
    fault_ = error.id == kOutOfRange ? "not valid JSON (a number is too large)"
                                     : fmt::format("not valid JSON near byte {}", position);
    return false;
  }

 private:
  Json* place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    auto& container = *open_.back();
    if (container.is_object()) return &(container[key_] = std::move(value));
    container.push_back(std::move(value));
    return &container.back();
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() < kMostJsonDepth) {
      open_.push_back(place(std::move(value)));
      return true;
    }
    fault_ = fmt::format("nested more than {} levels deep", kMostJsonDepth);
    return false;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  std::vector<Json*> open_;
  std::string key_;  // of the value that comes, in an object
  std::optional<std::string> fault_;
};

}  // namespace

// A value of nlohmann's that is no list and no object is destroyed without asking for memory.

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void JsonWriter::new_line() {
  if (indent_ < 0) return;
  text_ += '\n';
  text_.append(filled_.size() * static_cast<size_t>(indent_), ' ');
}

void JsonWriter::begin_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (filled_.empty()) return;
  if (filled_.back()) text_ += ',';
  filled_.back() = true;
  new_line();
}

JsonWriter& JsonWriter::open(char bracket) {
  begin_value();
  text_ += bracket;
  filled_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool filled = filled_.back();
  filled_.pop_back();
  if (filled) new_line();
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  begin_value();
  text_ += json_text(name);
  text_ += indent_ < 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) { return raw(json_text(value)); }

JsonWriter& JsonWriter::number(double value) { return raw(nlohmann::json(value).dump()); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  begin_value();
  text_ += json;
  return *this;
}

void dismantle(Json& value) noexcept {
  if (!value.is_structured()) return;
  for (auto& child : value) dismantle(child);
  if (value.is_array())
    value.get_ref<Json::array_t&>().clear();
  else
    value.get_ref<Json::object_t&>().clear();
}

std::optional<std::string> parse_json(std::string_view text, TidyJson& into) {
  Builder builder(into.value);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.fault();
}

}  // namespace trinity
