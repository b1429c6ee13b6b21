#include "execute/numbers.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/random.h"
#include "base/stop.h"

namespace trinity {

uint64_t seed_of(uint64_t seed, const std::string& what, const std::string& name, int64_t index) {
  return RandomStream(
             Hasher().add(seed).add(what).add(name).add(static_cast<uint64_t>(index)).value())
             .next() >>
         1;
}

namespace {

/// As at::randn on the processor, which draws in rows of 16, but looks now and then whether to stop.
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

at::Tensor first_weight(const Parameter& parameter, uint64_t seed, const Operator& op) {
  const auto& shape = parameter.shape;
  const bool scales = op.type == "Mul" ||
                      (op.type.ends_with("Normalization") && &parameter == op.parameters.data());
  if (scales || parameter.name == "scale" || parameter.name == "variance") return at::ones(shape);
  if (shape.size() <= 1) return at::zeros(shape);
  const double fan_in = static_cast<double>(parameter.elements()) / static_cast<double>(shape[0]);
  auto random =
      at::detail::createCPUGenerator(seed_of(seed, "weight", op.name + "/" + parameter.name, 0));
  return drawn_normal(shape, random).div_(std::sqrt(std::max(1.0, fan_in)));
}

at::Tensor drawn_data(const Tensor& tensor, uint64_t key, int64_t first_sample, int64_t bound) {
  const bool whole = tensor.dtype == DType::int64 || tensor.dtype == DType::int32;
  auto data = at::empty(tensor.shape, whole ? at::kLong : at::kFloat);
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
