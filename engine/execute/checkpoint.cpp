#include "execute/checkpoint.h"

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "formats/export/safetensors.h"

namespace trinity {
namespace {

constexpr std::string_view kNote = "note ";

template <class Number>
Number number_in(const SavedArrays& saved, const std::string& text, const char* what) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    saved.refuse(fmt::format("expected {}, got '{}'", what, text));
  return number;
}

}  // namespace

void write_weights(const std::string& path, const std::vector<NamedTensor>& values,
                   const Progress& progress) {
  std::vector<at::Tensor> kept;
  std::vector<SavedArray> arrays;
  for (const auto& [name, tensor] : values) {
    kept.push_back(tensor.detach().cpu().contiguous());
    const auto& own = kept.back();
    arrays.push_back({name, own.scalar_type() == at::kDouble ? "F64" : "F32", own.sizes().vec(),
                      {static_cast<const char*>(own.data_ptr()), own.nbytes()}});
  }
  std::map<std::string, std::string> about = {{"steps", std::to_string(progress.steps)}};
  for (const auto& [name, number] : progress.notes)
    about[std::string(kNote) + name] = fmt::format("{}", number);
  write_arrays(path, arrays, about);
}

ReadWeights read_weights(const std::string& path) {
  const auto saved = read_arrays(path, false);
  ReadWeights result;
  for (const auto& [name, text] : saved.metadata) {
    if (name == "steps")
      result.progress.steps = number_in<int64_t>(saved, text, "a number of steps");
    else if (name.starts_with(kNote))
      result.progress.notes[name.substr(kNote.size())] = number_in<double>(saved, text, "a number");
  }
  if (result.progress.steps < 0)
    saved.refuse(fmt::format("expected a number of steps, got '{}'", result.progress.steps));
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
