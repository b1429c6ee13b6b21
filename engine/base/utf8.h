#pragma once

#include <string>
#include <string_view>

namespace trinity {

/// True if a text is UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

/// The text with every byte that is not UTF-8 written as "\xE9".
std::string to_utf8(std::string_view text);

/// The text made safe for a terminal: bytes that are not UTF-8, control characters (except line
/// feed and tab) and characters that change the writing direction are written as "\x1B" or
/// "\u{202E}".
std::string printable(std::string_view text);

/// The same for JSON text: such characters are written as JSON escapes, "\u009b".
std::string printable_json(std::string json);

/// Names are stored in files, which are UTF-8, and looked up by them. Throws ArgumentError that
/// names `what` ("operator", "device") and the first wrong byte.
void check_utf8(std::string_view what, std::string_view name);

}  // namespace trinity
