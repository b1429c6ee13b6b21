#pragma once

#include <functional>
#include <string>
#include <vector>

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
  /// Asked after open(false): where the numbers of this list go instead of to number(), or null.
  virtual std::vector<double>* numbers() { return nullptr; }
};

/// The next bytes of a text: fills `buffer` with at most `size`, returns how many; 0 at the end.
using JsonSource = std::function<size_t(char* buffer, size_t size)>;

/// Reads JSON that is mostly numbers, several times as fast as a general parser: nlohmann's reads
/// the strings, all else is here. Whole numbers of up to 18 digits are exact where a double is.
/// Holds a piece of the text at a time; events bound the depth. Throws FileError
/// "<source>:<line>:<column>: not valid JSON (...)", Interrupted, and what `read` throws.
void scan_json(const JsonSource& read, const std::string& source, JsonEvents& events);

}  // namespace trinity
