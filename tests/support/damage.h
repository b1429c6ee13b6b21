#pragma once

#include <doctest/doctest.h>

#include <string>

namespace trinity::test {

/// The message of the error of type E that body() throws; "no error" if there is none.
template <class E, class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

/// `text` with the first occurrence of `what`, which must exist, replaced.
inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

/// Truncates a text at every byte and damages every byte in turn. `error_of` reads the result as a
/// file whose name begins with "x." and returns the error message, or "no error". Truncated texts
/// must be refused (except that up to `whole` bytes may be missing at the end); damaged ones may be
/// read. Every message must name the file.
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
