#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace trinity {

/// An array in a file.
struct SavedArray {
  std::string name, dtype;  ///< dtype as in files: "F32", "F64", "I64", "BOOL"
  std::vector<int64_t> shape;
  std::string_view bytes;
};

/// A row of float32 numbers; `values` must outlive it.
inline SavedArray saved_floats(const char* name, const std::vector<float>& values) {
  return {name,
          "F32",
          {static_cast<int64_t>(values.size())},
          {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}};
}

/// Arrays and texts by name in the safetensors format: 8 bytes length, a JSON header, raw bytes.
/// Python reads the arrays with `safetensors.torch.load_file`. In contrast to LibTorch's archives
/// it contains no pickle, whose reader is unsafe for damaged files.
///
/// The texts are the header's `__metadata__`. Its first entry is "fnv1a", a hash of the file with
/// zeros in its place. A file with this hash that was changed or truncated is refused.
struct SavedArrays {
  std::string path, content;  ///< `arrays` point into `content`
  std::vector<SavedArray> arrays;
  std::map<std::string, std::string> metadata;
  bool hashed = false;

  const SavedArray* find(std::string_view name) const;  ///< nullptr: none
  template <class... Values>
  [[noreturn]] void refuse(fmt::format_string<Values...> reason, Values&&... values) const {
    throw FileError("{}: {}", path, fmt::format(reason, std::forward<Values>(values)...));
  }
};

/// Throws FileError.
void write_arrays(const std::string& path, const std::vector<SavedArray>& arrays,
                  const std::map<std::string, std::string>& metadata);
/// Throws FileError for a file in another format or, with `hashed`, without a hash.
SavedArrays read_arrays(const std::string& path, bool hashed);

}  // namespace trinity
