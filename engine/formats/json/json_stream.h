#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "formats/json/json_reader.h"

namespace trinity {

/// The next bytes of a text: fills `buffer` with at most `size`, returns how many; 0 at the end.
using JsonSource = std::function<size_t(char* buffer, size_t size)>;

/// RapidJSON's stream over a JsonSource: a piece of the text at a time, and its lines counted. For
/// parsing in situ, where RapidJSON itself makes nothing of numbers: strings are put into a buffer
/// aside, and number() reads what was scanned.
class JsonStream {
 public:
  static constexpr size_t kLongestString = size_t{1} << 20, kLongestNumber = 4096;
  using Ch = char;

  explicit JsonStream(const JsonSource& read)
      : read_(read), window_(kLongestNumber + kPiece + 2), string_(kLongestString + 1) {
    begin_ = at_ = end_ = window_.data() + 1;
    refill();
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(kByteOrderMark))
      at_ += kByteOrderMark.size();
  }

  Ch Peek() {
    if (at_ == end_) refill();
    return *at_;
  }
  Ch Take() {
    const Ch c = Peek();
    at_ += at_ != end_;
    return c;
  }
  size_t Tell() const { return 0; }  // position() says more
  Ch* PutBegin() {
    put_ = 0;
    return string_.data();
  }
  void Put(Ch c) {
    if (put_ < string_.size()) string_[put_] = c;
    ++put_;
  }
  /// Longer than the buffer where the string was.
  size_t PutEnd(Ch*) const { return put_; }

  /// The number that ends where reading stands; none where it is too large or too long.
  std::optional<double> number() const {
    const char* from = at_;
    uint64_t whole = 0, unit = 1;
    do {
      whole += unit * static_cast<uint64_t>(*--from - '0');
      unit *= 10;
    } while (is_digit(from[-1]) && at_ - from < kWholeDigits);
    if (!is_of_number(from[-1])) [[likely]] return static_cast<double>(whole);
    return number_before(from);
  }

  bool ended() { return at_ == end_ && !refill(); }
  /// Line and column of what is read next.
  std::string position() {
    count_lines();
    return fmt::format("{}:{}", lines_ + 1, columns_ + 1);
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 18;
  static constexpr std::ptrdiff_t kWholeDigits = 19;  // which 64 bits hold

  static bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
  static bool is_of_number(char c) {
    return is_digit(c) || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+';
  }
  /// number(), where it begins before `from`.
  [[gnu::noinline]] std::optional<double> number_before(const char* from) const {
    while (is_of_number(from[-1])) --from;
    if (at_ - from >= static_cast<std::ptrdiff_t>(kLongestNumber)) return std::nullopt;
    return json_number({from, at_});
  }

  /// Before what is read stays what may be the beginning of a number, and before that a byte that
  /// is of none; behind the last byte stands a zero.
  [[gnu::noinline]] bool refill() {
    count_lines();
    poll_stop();
    char* const first = window_.data() + 1;
    size_t kept = 0;
    while (kept < kLongestNumber && is_of_number(*(end_ - kept - 1))) ++kept;
    std::copy(end_ - kept, end_, first);
    begin_ = at_ = first + kept;
    const size_t got = read_(first + kept, kPiece);
    end_ = begin_ + got;
    first[kept + got] = '\0';
    return got > 0;
  }
  /// Adds what the window holds before at_ to the position of its beginning.
  void count_lines() {
    while (begin_ != at_) {
      const void* end = std::memchr(begin_, '\n', static_cast<size_t>(at_ - begin_));
      columns_ = end ? 0 : columns_ + (at_ - begin_);
      lines_ += end != nullptr;
      begin_ = end ? static_cast<const char*>(end) + 1 : at_;
    }
  }

  const JsonSource& read_;
  std::vector<char> window_, string_;
  size_t put_ = 0;
  const char *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;  // counted to, read to
  std::ptrdiff_t lines_ = 0, columns_ = 0;
};

}  // namespace trinity
