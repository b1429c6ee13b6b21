#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace trinity {
namespace {

using Json = nlohmann::json;

/// Keeps the description of the error.
class Builder : public JsonBuilder {
 public:
  using JsonBuilder::JsonBuilder;

  const std::optional<std::string>& fault() const { return fault_; }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;
    fault_ = error.id == kOutOfRange ? "not valid JSON (a number is too large)"
                                     : fmt::format("not valid JSON near byte {}", position);
    return false;
  }

 protected:
  bool repeated() override {
    fault_ = fmt::format("field {} is repeated in its object", json_text(opened().back().key));
    return false;
  }
  bool too_deep() override {
    fault_ = fmt::format("nested more than {} levels deep", kMostJsonDepth);
    return false;
  }

 private:
  std::optional<std::string> fault_;
};

}  // namespace

// Scalars of nlohmann's library are destroyed without allocating memory.

std::string json_text(std::string_view text) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), plain)) {
    std::string quoted(text.size() + 2, '"');
    std::copy(text.begin(), text.end(), quoted.begin() + 1);
    return quoted;
  }
  return printable_json(
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

bool JsonBuilder::key(string_t& value) {
  auto& [object, key] = open_.back();
  const bool twice = object->contains(value);
  key = std::move(value);
  return !twice || repeated();
}

Json* JsonBuilder::place(Json value) {
  step();
  if (open_.empty()) return &(root_ = std::move(value));
  auto& [container, key] = open_.back();
  if (container->is_object()) return &((*container)[key] = std::move(value));
  container->push_back(std::move(value));
  return &container->back();
}

bool JsonBuilder::open(Json value) {
  if (open_.size() >= kMostJsonDepth) return too_deep();
  open_.push_back({place(std::move(value)), ""});
  return true;
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
