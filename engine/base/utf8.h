#pragma once

#include <string>
#include <string_view>

namespace trinity {

/// Whether a text is UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

/// The text with every byte that is no UTF-8 written as "\xE9".
std::string to_utf8(std::string_view text);

/// The text as a terminal shows it and does nothing else: bytes that are no UTF-8, control
/// characters (all but line feed and tab) and those that turn the direction of writing are written
/// as "\x1B" or "\u{202E}".
std::string printable(std::string_view text);

/// The same of text in JSON: characters that command a terminal are written as JSON names them,
/// "\u009b".
std::string printable_json(std::string json);

/// Names stand in files, all of which are UTF-8, and are found by them again. Throws ArgumentError
/// naming `what` ("operator", "device") and the byte for one that is not.
void check_utf8(std::string_view what, std::string_view name);

}  // namespace trinity
