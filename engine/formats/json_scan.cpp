#include "formats/json_scan.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kWindow = size_t{1} << 18;
/// Bytes that stand in the window where a value begins: no number is longer.
constexpr std::ptrdiff_t kLongest = 4096;
constexpr size_t kLongestString = size_t{1} << 20;

class Scanner {
 public:
  Scanner(const JsonSource& read, const std::string& source, JsonEvents& events)
      : read_(read), window_(kWindow), source_(source), events_(events) {
    begin_ = at_ = end_ = window_.data();
  }

  void run() {
    refill(at_);
    if (std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(kByteOrderMark))
      at_ += kByteOrderMark.size();
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
      numbers_ = nullptr;
      first_ = false;
      events_.close();
      return;
    }
    if (!first_) take(',', object ? "expected ',' or '}'" : "expected ',' or ']'");
    if (object) {
      skip_blanks();
      if (at_ == end_) fail("the text ends early");
      if (*at_ != '"') fail("expected a field's name in quotes");
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
    if (end_ - at_ < kLongest) refill(at_);
    if (at_ == end_) fail("the text ends early");
    const char c = *at_;
    if (c == '{' || c == '[') {
      ++at_;
      events_.open(c == '{');
      numbers_ = c == '[' ? events_.numbers() : nullptr;
      open_.push_back(c == '{');
      first_ = true;
    } else if (c == '"') {
      events_.string(quoted());
    } else if (c == '-' || is_digit(c)) {
      number();
      while (follows_number()) number();
    } else {
      word();
    }
  }

  /// Whether another number follows in a list of numbers, and goes to it: most values of a long
  /// file need none of what next() looks at.
  bool follows_number() {
    if (!numbers_ || end_ - at_ < kLongest || *at_ != ',') return false;
    const char* begin = at_ + (at_[1] == ' ' ? 2 : 1);
    if (*begin != '-' && !is_digit(*begin)) return false;
    stop_.step();
    at_ = begin;
    return true;
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
    const bool negative = *start == '-';
    const char* digits = start + (negative ? 1 : 0);
    const char* at = digits;
    int64_t whole = 0;
    for (; at != end_ && is_digit(*at); ++at)
      if (at - digits < kExact) whole = whole * 10 + (*at - '0');
    at_ = at;
    if (at == digits || (*digits == '0' && at - digits > 1)) fail("not a number");
    const bool fraction = at != end_ && (*at == '.' || *at == 'e' || *at == 'E');
    if (fraction) skip_fraction();
    if (at_ - start >= kLongest) fail("the number is too long");
    if (!fraction && at - digits <= kExact)
      take_number(static_cast<double>(negative ? -whole : whole));
    else
      take_number(any_number(start));
  }
  /// The number that ends here; one too small for a double is 0.
  double any_number(const char* start) {
    double value = 0;
    const auto result = std::from_chars(start, at_, value);
    const std::string_view token(start, static_cast<size_t>(at_ - start));
    const bool tiny = token.find("e-") != token.npos || token.find("E-") != token.npos;
    if (result.ec == std::errc::result_out_of_range && !tiny) fail("the number is too large");
    if (result.ec == std::errc() && result.ptr != at_) fail("not a number");
    return value;
  }
  void take_number(double value) {
    if (numbers_)
      numbers_->push_back(value);
    else
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
    size_t size = 1;  // of what was looked at
    const auto more = [&] {
      if (at_ + size < end_) return true;
      if (size > kLongestString) fail("the string is too long");
      refill(at_);
      return at_ + size < end_;
    };
    while (more() && at_[size] != '"') size += at_[size] == '\\' ? 2 : 1;
    if (size > kLongestString) fail("the string is too long");
    if (!more()) fail("a string without an end");
    const char* last = at_ + size + 1;
    auto json = nlohmann::json::parse(at_, last, nullptr, false);
    if (!json.is_string())
      fail("not a string: an escape, a control character or bytes that are not UTF-8");
    at_ = last;
    return json.get<std::string>();
  }

  void skip_blanks() {
    while (true) {
      while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
      if (at_ != end_ || !refill(at_)) return;
      stop_.step();
    }
  }
  void take(char c, const char* expected) {
    if (at_ == end_) fail("the text ends early");
    if (*at_ != c) fail(expected);
    ++at_;
  }

  /// Reads on, keeping what begins at `keep`, which must be at_; false at the end of the text.
  bool refill(const char* keep) {
    if (ended_) return false;
    count_lines(keep);
    const auto kept = static_cast<size_t>(end_ - keep);
    std::copy(keep, end_, window_.data());
    if (kept > window_.size() / 2) window_.resize(2 * window_.size());  // within a long string
    const size_t got = read_(window_.data() + kept, window_.size() - kept);
    ended_ = got == 0;
    begin_ = at_ = window_.data();
    end_ = begin_ + kept + got;
    return !ended_;
  }

  /// Adds what the window holds before `to` to the position of its beginning.
  void count_lines(const char* to) {
    while (const void* end = std::memchr(begin_, '\n', static_cast<size_t>(to - begin_))) {
      ++lines_;
      columns_ = 0;
      begin_ = static_cast<const char*>(end) + 1;
    }
    columns_ += to - begin_;
    begin_ = to;
  }

  [[noreturn]] void fail(const char* reason) {
    count_lines(at_);
    throw FileError(
        fmt::format("{}:{}:{}: not valid JSON ({})", source_, lines_ + 1, columns_ + 1, reason));
  }

  const JsonSource& read_;
  std::vector<char> window_;
  const char* begin_;  // of what is not counted in lines_ and columns_ yet
  const char* at_;
  const char* end_;
  bool ended_ = false;
  std::ptrdiff_t lines_ = 0, columns_ = 0;
  const std::string& source_;
  JsonEvents& events_;
  std::vector<double>* numbers_ = nullptr;  // of the list that is read, where they go
  std::vector<bool> open_;                  // containers: whether an object
  bool first_ = true;                       // nothing stands in the innermost one yet
  StopPoll stop_;
};

}  // namespace

void scan_json(const JsonSource& read, const std::string& source, JsonEvents& events) {
  Scanner(read, source, events).run();
}

}  // namespace trinity
