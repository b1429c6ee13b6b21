#include "execute/kernels/numbers.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/random.h"
#include "base/stop.h"
#include "graph/meaning.h"

namespace trinity {

uint64_t seed_of(uint64_t seed, const std::string& what, const std::string& name, int64_t index) {
  return RandomStream(
             Hasher().add(seed).add(what).add(name).add(static_cast<uint64_t>(index)).value())
             .next() >>
         1;
}

namespace {

/// As at::randn on the CPU, which generates rows of 16, but polls the stop flag.
at::Tensor drawn_normal(at::IntArrayRef shape, at::Generator& random) {
  constexpr int64_t kPart = int64_t{1} << 20;
  auto data = at::empty(shape);
  auto flat = data.view(-1);
  for (int64_t begin = 0, rest = flat.numel(); rest > 0;) {
    poll_stop();
    const int64_t count = rest < 2 * kPart ? rest : kPart;
    flat.narrow(0, begin, count).normal_(0, 1, random);
    begin += count;
    rest -= count;
  }
  return data;
}

}  // namespace

at::Tensor first_weight(const Parameter& parameter, uint64_t seed, const Operator& op,
                        bool first) {
  const auto& shape = parameter.shape.get();
  const bool scales = op.type == "Mul" ||
                      (op.type.ends_with("Normalization") && first);
  if (scales || parameter.name == "scale" || parameter.name == "variance") return at::ones(shape);
  if (shape.size() <= 1) return at::zeros(shape);
  const double fan_in = static_cast<double>(parameter.elements()) / static_cast<double>(shape[0]);
  const auto source = text_attribute(op, kSource);
  const auto& name = source.empty() ? op.name : source;
  auto random =
      at::detail::createCPUGenerator(seed_of(seed, "weight", name + "/" + parameter.name, 0));
  const double gain = text_attribute(op, "start") == "he" ? 2 : 1;
  return drawn_normal(shape, random).div_(std::sqrt(std::max(1.0, fan_in) / gain));
}

at::Tensor drawn_mask(at::IntArrayRef shape, const std::vector<int64_t>& begin,
                      const std::vector<int64_t>& whole, double keep, uint64_t key, int64_t batch) {
  auto mask = at::empty(shape, at::kFloat);
  auto* numbers = mask.data_ptr<float>();
  const int64_t count = mask.numel(), row = shape.empty() ? 1 : shape.back();
  const auto all = whole.empty() ? shape.vec() : whole;
  const uint64_t first = key + static_cast<uint64_t>(batch * c10::multiply_integers(all));
  const auto least = static_cast<uint64_t>(keep * static_cast<double>(uint64_t{1} << 40));
  std::vector<int64_t> at(shape.size(), 0);
  StopPoll poll;
  for (int64_t done = 0; done < count; done += row) {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d)
      place = place * all[d] + at[d] + (begin.empty() ? 0 : begin[d]);
    const uint64_t from = first + static_cast<uint64_t>(place);
    for (int64_t i = 0; i < row; ++i)
      numbers[done + i] = (mix64(from + static_cast<uint64_t>(i)) >> 24) < least ? 1.0F : 0.0F;
    for (size_t d = at.size() < 2 ? 0 : at.size() - 1; d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
    poll.step();
  }
  return mask;
}

at::Tensor drawn_data(const trinity::Tensor& tensor, uint64_t key, int64_t first_sample, int64_t bound) {
  const bool whole = tensor.dtype == DType::int64 || tensor.dtype == DType::int32;
  auto data = at::empty(tensor.shape.get(), whole ? at::kLong : at::kFloat);
  const int64_t count = data.numel();
  const int64_t per_sample =
      tensor.shape.empty() ? 1 : count / std::max<int64_t>(1, tensor.shape[0]);
  const uint64_t first = key + static_cast<uint64_t>(first_sample * per_sample);
  StopPoll poll;
  const auto drawn = [&](int64_t i) { return mix64(first + static_cast<uint64_t>(i)); };
  if (whole) {
    auto* numbers = data.data_ptr<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      poll.step();
      numbers[i] = static_cast<int64_t>((drawn(i) >> 1) % static_cast<uint64_t>(bound));
    }
    return data;
  }
  auto* numbers = data.data_ptr<float>();
  const double width = std::sqrt(12.0) / static_cast<double>(1 << 24);
  for (int64_t i = 0; i < count; ++i) {
    poll.step();
    numbers[i] = static_cast<float>(
        width * (static_cast<double>(drawn(i) >> 40) - static_cast<double>(1 << 23)));
  }
  return data;
}

}  // namespace trinity
