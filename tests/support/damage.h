#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace trinity::test {

/// The message of the error of kind E that body() ends with, "no error" where there is none.
template <class E, class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

/// `text` with its first `what`, which it must have, replaced.
inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

/// Cuts a text off at every byte and damages every byte in turn: `error_of` reads what comes of it
/// as a file whose name begins with "x." and returns the message of the error, "no error" where
/// there is none. A text cut off must be refused (until `whole` bytes of its end are missing, which
/// may be read), a damaged one may be read; every message names the file.
template <class ErrorOf>
void check_damaged(const std::string& text, ErrorOf error_of, size_t whole = 1) {
  using namespace std::literals;
  for (size_t length = 0; length + whole < text.size(); ++length)
    CHECK(error_of(text.substr(0, length)).starts_with("x."));
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char wrong : "\0\"{}],-19e\t\n=[\xff"sv) {
      std::string damaged = text;
      damaged[at] = wrong;
      const auto error = error_of(damaged);
      CHECK((error == "no error" || error.starts_with("x.")));
    }
  }
}

}  // namespace trinity::test
