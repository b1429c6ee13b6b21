#include "execute/checkpoint.h"

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "formats/export/safetensors.h"

namespace trinity {

namespace {

constexpr std::string_view kCourse = "course.";

template <class Number>
Number number_of(const SavedArrays& saved, const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    saved.refuse("expected a number, got '{}'", text);
  return number;
}

}  // namespace

void write_weights(const std::string& path, const std::vector<NamedTensor>& values, int64_t steps,
                   const std::map<std::string, double>& course) {
  std::vector<at::Tensor> kept;
  std::vector<SavedArray> arrays;
  for (const auto& [name, tensor] : values) {
    kept.push_back(tensor.detach().cpu().contiguous());
    const auto& own = kept.back();
    arrays.push_back({name, own.scalar_type() == at::kDouble ? "F64" : "F32", own.sizes().vec(),
                      {static_cast<const char*>(own.data_ptr()), own.nbytes()}});
  }
  std::map<std::string, std::string> texts{{"steps", std::to_string(steps)}};
  for (const auto& [name, number] : course)
    texts[std::string(kCourse) + name] = fmt::format("{}", number);
  write_arrays(path, arrays, texts);
}

ReadWeights read_weights(const std::string& path, bool checkpoint) {
  const auto saved = read_arrays(path, checkpoint);
  ReadWeights result;
  for (const auto& [name, text] : saved.metadata)
    if (name == "steps")
      result.steps = number_of<int64_t>(saved, text);
    else if (name.starts_with(kCourse))
      result.course[name.substr(kCourse.size())] = number_of<double>(saved, text);
  if (result.steps < 0)
    saved.refuse("expected a number of steps, got {}", result.steps);
  for (const auto& array : saved.arrays) {
    const bool wide = array.dtype == "F64";
    if (!wide && array.dtype != "F32")
      saved.refuse("'{}': expected F32 or F64, got {}", array.name, array.dtype);
    auto tensor = at::empty(array.shape, wide ? at::kDouble : at::kFloat);
    if (tensor.nbytes() != array.bytes.size())
      saved.refuse("'{}': expected {} bytes, got {}", array.name, tensor.nbytes(), array.bytes.size());
    std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
    result.values.push_back({array.name, std::move(tensor)});
  }
  return result;
}

}  // namespace trinity
