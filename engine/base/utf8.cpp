#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace trinity {
namespace {

/// Number of bytes of the character at the start of `text`; 0: invalid.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const auto first = byte(0);
  const size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k)
    if ((byte(k) & 0xC0) != 0x80) return 0;
  // Overlong encodings, surrogates, values above U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F))
    return 0;
  return length;
}

/// Position of the first byte that is not UTF-8; the size of the text if there is none.
size_t first_wrong(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const bool ascii = static_cast<unsigned char>(text[at]) < 0x80;
    const size_t length = ascii ? 1 : character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return text.size();
}

/// Code point of the character of `length` bytes at the start of `text`.
uint32_t code_point(std::string_view text, size_t length) {
  const auto first = static_cast<unsigned char>(text[0]);
  uint32_t code = length == 1 ? first : first & (0xFFU >> (length + 1));
  for (size_t k = 1; k < length; ++k)
    code = code << 6 | (static_cast<unsigned char>(text[k]) & 63U);
  return code;
}

bool commands_terminal(uint32_t code) {
  if (code < 0x20) return code != '\n' && code != '\t';
  return (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

bool is_utf8(std::string_view text) { return first_wrong(text) == text.size(); }

std::string to_utf8(std::string_view text) {
  std::string result;
  for (size_t at = first_wrong(text);; at = first_wrong(text)) {
    result += text.substr(0, at);
    if (at == text.size()) return result;
    result += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[at]));
    text.remove_prefix(at + 1);
  }
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  const auto plain = [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; };
  while (!text.empty()) {
    const auto end = std::find_if_not(text.begin(), text.end(), plain);
    result.append(text.begin(), end);
    text.remove_prefix(static_cast<size_t>(end - text.begin()));
    if (text.empty()) break;
    const size_t length = std::max<size_t>(1, character_length(text));
    const bool whole = character_length(text) > 0;
    const uint32_t code = whole ? code_point(text, length) : 0;
    if (!whole || (commands_terminal(code) && code < 0x80))
      result += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[0]));
    else if (commands_terminal(code))
      result += fmt::format("\\u{{{:04X}}}", code);
    else
      result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

std::string printable_json(std::string json) {
  // First bytes of DEL, C1 (C2 80 to C2 9F) and of direction marks (D8, E2): rare in texts.
  if (json.find_first_of("\x7F\xC2\xD8\xE2") == std::string::npos) return json;
  std::string result;
  for (std::string_view rest = json; !rest.empty();) {
    const size_t length = std::max<size_t>(1, character_length(rest));
    const uint32_t code = code_point(rest, length);
    if (code >= 0x7F && commands_terminal(code))
      result += fmt::format("\\u{:04x}", code);
    else
      result += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return result;
}

void check_utf8(std::string_view what, std::string_view name) {
  const size_t at = first_wrong(name);
  if (at == name.size()) return;
  throw ArgumentError("{} '{}': expected a name in UTF-8, got byte 0x{:02X} at position {} (of Latin-1, iconv -f "
                      "latin1 -t utf8 makes UTF-8)", what, to_utf8(name.substr(0, 200)),
                      static_cast<unsigned char>(name[at]), at + 1);
}

}  // namespace trinity
