#include "formats/json_scan.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& source, JsonEvents& events)
      : begin_(text.data()),
        at_(text.data()),
        end_(at_ + text.size()),
        source_(source),
        events_(events) {}

  void run() {
    value();
    while (!open_.empty()) next();
    skip_blanks();
    if (at_ != end_) fail("expected the end of the text");
  }

 private:
  /// What follows in the innermost container: its end, or a comma and a value.
  void next() {
    const bool object = open_.back();
    skip_blanks();
    if (at_ != end_ && *at_ == (object ? '}' : ']')) {
      ++at_;
      open_.pop_back();
      first_ = false;
      events_.close();
      return;
    }
    if (!first_) take(',', object ? "expected ',' or '}'" : "expected ',' or ']'");
    if (object) {
      skip_blanks();
      if (at_ == end_ || *at_ != '"') fail("expected a field's name in quotes");
      events_.key(quoted());
      skip_blanks();
      take(':', "expected ':'");
    }
    first_ = false;
    value();
  }

  void value() {
    stop_.step();
    skip_blanks();
    if (at_ == end_) fail("the text ends early");
    const char c = *at_;
    if (c == '{' || c == '[') {
      ++at_;
      events_.open(c == '{');
      open_.push_back(c == '{');
      first_ = true;
    } else if (c == '"') {
      events_.string(quoted());
    } else if (c == '-' || is_digit(c)) {
      number();
    } else {
      word();
    }
  }

  void word() {
    for (const char* text : {"null", "true", "false"}) {
      const auto size = static_cast<std::ptrdiff_t>(std::string_view(text).size());
      if (end_ - at_ < size || std::string_view(at_, static_cast<size_t>(size)) != text) continue;
      at_ += size;
      return events_.word(text);
    }
    fail("expected a value");
  }

  void number() {
    constexpr std::ptrdiff_t kExact = 18;  // digits that an int64_t holds
    const char* start = at_;
    const bool negative = *at_ == '-';
    if (negative) ++at_;
    const char* digits = at_;
    int64_t whole = 0;
    for (; at_ != end_ && is_digit(*at_); ++at_)
      if (at_ - digits < kExact) whole = whole * 10 + (*at_ - '0');
    if (at_ == digits || (*digits == '0' && at_ - digits > 1)) fail("not a number");
    const bool fraction = at_ != end_ && (*at_ == '.' || *at_ == 'e' || *at_ == 'E');
    if (!fraction && at_ - digits <= kExact)
      return events_.number(static_cast<double>(negative ? -whole : whole));
    if (fraction) skip_fraction();
    double value = 0;
    const auto result = std::from_chars(start, at_, value);
    const std::string_view token(start, static_cast<size_t>(at_ - start));
    const bool tiny = token.find("e-") != token.npos || token.find("E-") != token.npos;
    if (result.ec == std::errc::result_out_of_range && !tiny) fail("the number is too large");
    if (result.ec == std::errc() && result.ptr != at_) fail("not a number");
    events_.number(value);
  }
  void skip_fraction() {
    const auto skip_digits = [this] {
      if (at_ == end_ || !is_digit(*at_)) fail("not a number");
      while (at_ != end_ && is_digit(*at_)) ++at_;
    };
    if (*at_ == '.') {
      ++at_;
      skip_digits();
    }
    if (at_ == end_ || (*at_ != 'e' && *at_ != 'E')) return;
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    skip_digits();
  }

  /// A string, from its first quote on.
  std::string quoted() {
    const char* start = at_++;
    while (at_ != end_ && *at_ != '"') at_ += *at_ == '\\' && at_ + 1 != end_ ? 2 : 1;
    if (at_ == end_) {
      at_ = start;
      fail("a string without an end");
    }
    ++at_;
    auto json = nlohmann::json::parse(start, at_, nullptr, false);
    if (!json.is_string()) {
      at_ = start;
      fail("not a string: an escape, a control character or bytes that are not UTF-8");
    }
    return json.get<std::string>();
  }

  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  void take(char c, const char* expected) {
    if (at_ == end_) fail("the text ends early");
    if (*at_ != c) fail(expected);
    ++at_;
  }

  [[noreturn]] void fail(const char* reason) const {
    const std::string_view before(begin_, static_cast<size_t>(at_ - begin_));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto start = before.rfind('\n');
    const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
    throw FileError(fmt::format("{}:{}:{}: not valid JSON ({})", source_, line, column, reason));
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  const std::string& source_;
  JsonEvents& events_;
  std::vector<bool> open_;  // containers: whether an object
  bool first_ = true;       // nothing stands in the innermost one yet
  StopPoll stop_;
};

}  // namespace

void scan_json(std::string_view text, const std::string& source, JsonEvents& events) {
  Scanner(text, source, events).run();
}

}  // namespace trinity
