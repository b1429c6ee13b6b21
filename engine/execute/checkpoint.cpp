#include "execute/checkpoint.h"

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "formats/export/safetensors.h"

namespace trinity {

void write_weights(const std::string& path, const std::vector<NamedTensor>& values, int64_t steps) {
  std::vector<at::Tensor> kept;
  std::vector<SavedArray> arrays;
  for (const auto& [name, tensor] : values) {
    kept.push_back(tensor.detach().cpu().contiguous());
    const auto& own = kept.back();
    arrays.push_back({name, own.scalar_type() == at::kDouble ? "F64" : "F32", own.sizes().vec(),
                      {static_cast<const char*>(own.data_ptr()), own.nbytes()}});
  }
  write_arrays(path, arrays, {{"steps", std::to_string(steps)}});
}

ReadWeights read_weights(const std::string& path) {
  const auto saved = read_arrays(path, false);
  ReadWeights result;
  const auto steps = saved.metadata.find("steps");
  if (steps != saved.metadata.end()) {
    const auto& text = steps->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.steps);
    if (error != std::errc() || end != text.data() + text.size() || result.steps < 0)
      saved.refuse(fmt::format("expected a number of steps, got '{}'", text));
  }
  for (const auto& array : saved.arrays) {
    const bool wide = array.dtype == "F64";
    if (!wide && array.dtype != "F32")
      saved.refuse(fmt::format("'{}': expected F32 or F64, got {}", array.name, array.dtype));
    auto tensor = at::empty(array.shape, wide ? at::kDouble : at::kFloat);
    if (tensor.nbytes() != array.bytes.size())
      saved.refuse(fmt::format("'{}': expected {} bytes, got {}", array.name, tensor.nbytes(),
                               array.bytes.size()));
    std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
    result.values.push_back({array.name, std::move(tensor)});
  }
  return result;
}

}  // namespace trinity
