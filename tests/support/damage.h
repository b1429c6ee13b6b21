#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace trinity::test {

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
