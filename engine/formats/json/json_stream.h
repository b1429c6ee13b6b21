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

/// Source of text: fills `buffer` with at most `size` bytes and returns how many; 0 at the end.
using JsonSource = std::function<size_t(char* buffer, size_t size)>;

/// RapidJSON stream over a JsonSource: holds one piece of the text at a time and counts lines. For
/// in-situ parsing, where RapidJSON does not convert numbers: strings are copied to a separate
/// buffer, and number() converts the scanned digits. Not thread-safe.
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
  size_t Tell() const { return 0; }  // see position()
  Ch* PutBegin() {
    put_ = 0;
    return string_.data();
  }
  void Put(Ch c) {
    if (put_ < string_.size()) string_[put_] = c;
    ++put_;
  }
  /// The string's end is after the buffer.
  size_t PutEnd(Ch*) const { return put_; }

  /// The number that ends at the reading position; none if it is too large or too long.
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
  /// Line and column of the next character.
  std::string position() {
    count_lines();
    return fmt::format("{}:{}", lines_ + 1, columns_ + 1);
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 18;
  static constexpr std::ptrdiff_t kWholeDigits = 19;  // fit into 64 bits

  static bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
  static bool is_of_number(char c) {
    return is_digit(c) || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+';
  }
  /// number(), if it begins before `from`.
  [[gnu::noinline]] std::optional<double> number_before(const char* from) const {
    while (is_of_number(from[-1])) --from;
    if (at_ - from >= static_cast<std::ptrdiff_t>(kLongestNumber)) return std::nullopt;
    return json_number({from, at_});
  }

  /// Keeps the bytes before the reading position that may be the beginning of a number, and before
  /// them a byte that is not part of one; a zero follows the last byte.
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
  /// Adds the window's bytes before at_ to the position of its beginning.
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
  // counted up to begin_, read up to at_
  const char *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;
  std::ptrdiff_t lines_ = 0, columns_ = 0;
};

}  // namespace trinity
