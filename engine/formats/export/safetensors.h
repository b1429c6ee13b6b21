#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trinity {

/// An array in a file.
struct SavedArray {
  std::string name, dtype;  ///< dtype as files have it: "F32", "F64", "I64", "BOOL"
  std::vector<int64_t> shape;
  std::string_view bytes;
};

/// A row of float32 numbers, which must outlive it.
inline SavedArray saved_floats(const char* name, const std::vector<float>& values) {
  return {name,
          "F32",
          {static_cast<int64_t>(values.size())},
          {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}};
}

/// Arrays and texts by name as safetensors: 8 bytes length, a JSON header, raw bytes. Python reads
/// the arrays with `safetensors.torch.load_file`. Unlike LibTorch's own archives it holds no
/// pickle, whose reader is not safe against damaged files.
///
/// The texts are the header's `__metadata__`. Its first is "fnv1a", a hash over the file with zeros
/// in its place: a file with it that was changed or cut short is refused.
struct SavedArrays {
  std::string path, content;  ///< `arrays` point into the content
  std::vector<SavedArray> arrays;
  std::map<std::string, std::string> metadata;
  bool hashed = false;

  const SavedArray* find(std::string_view name) const;  ///< nullptr: none
  [[noreturn]] void refuse(const std::string& reason) const;
};

/// Throws FileError.
void write_arrays(const std::string& path, const std::vector<SavedArray>& arrays,
                  const std::map<std::string, std::string>& metadata);
/// Throws FileError for what is no such file, or, where `hashed` says so, has no hash.
SavedArrays read_arrays(const std::string& path, bool hashed);

}  // namespace trinity
