#pragma once

#include <string>
#include <string_view>

namespace trinity {

/// What scan_json() finds, in the order of the text. Throwing ends the scan.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void open(bool object) = 0;  ///< '{', or '[' where false
  virtual void close() = 0;
  virtual void key(std::string text) = 0;
  virtual void number(double value) = 0;
  virtual void string(std::string text) = 0;
  virtual void word(const char* text) = 0;  ///< "null", "true" or "false"
};

/// Reads JSON that is mostly numbers, several times as fast as a general parser: nlohmann's reads
/// the strings, all else is here. Whole numbers of up to 18 digits are exact where a double is.
/// Keeps nothing of the text; events bound the depth. Throws FileError "<source>:<line>:<column>:
/// not valid JSON (...)", Interrupted.
void scan_json(std::string_view text, const std::string& source, JsonEvents& events);

}  // namespace trinity
