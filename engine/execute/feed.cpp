#include "execute/feed.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "graph/meaning.h"

namespace trinity {
namespace {

int64_t elements_from(const std::vector<int64_t>& shape, size_t first) {
  int64_t product = 1;
  for (size_t d = first; d < shape.size(); ++d) product *= shape[d];
  return product;
}

bool is_whole(const Tensor& tensor) {
  return tensor.dtype == DType::int64 || tensor.dtype == DType::int32;
}

/// The name of an input before lowering.
std::string name_of(const Operator& op) { return has_meaning(op) ? text_attribute(op, kSource) : op.name; }

bool is_positions(const Operator& op, const std::vector<int64_t>& shape) {
  return name_of(op).ends_with("positions") || (shape.size() > 1 && shape[0] == 1);
}

/// A tensor to write to: `spare` if it has no other owner, else a new one.
at::Tensor writable(const at::Tensor& spare, const std::vector<int64_t>& shape,
                    at::ScalarType kind) {
  const bool fits = spare.defined() && spare.scalar_type() == kind && spare.sizes() == shape &&
                    spare.is_contiguous() && spare.use_count() == 1 &&
                    spare.storage().use_count() == 1;
  return fits ? spare : at::empty(shape, kind);
}

/// In blocks, which compilers vectorise at -O2.
void scale_bytes(const uint8_t* __restrict from, size_t count, float scale, float* __restrict to) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (size_t k = 0; k < 16; ++k) to[i + k] = static_cast<float>(from[i + k]) * scale;
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]) * scale;
}

}  // namespace

Feed::Feed(std::shared_ptr<const DataSet> data, const Graph& graph, uint64_t seed, int64_t batches)
    : data_(std::move(data)), seed_(seed), batches_(batches) {
  check(graph);
}

void Feed::check(const Graph& graph) {
  for (const auto& op : graph.operators()) {
    if (op.type != "Input") continue;
    Tensor tensor = graph.tensor(op.outputs[0]);
    const auto shape = list_attribute(op, "block_whole");
    if (!shape.empty()) tensor.shape = shape;
    if (tensor.shape.empty() || (data_->is_text && is_positions(op, tensor.shape))) continue;
    batch_ = tensor.shape[0];
    if (data_->is_text) length_ = elements_from(tensor.shape, 1);
    check_input(op, tensor);
  }
  // A row of symbols needs the next symbol as its last label.
  samples_ = data_->is_text ? std::max<int64_t>(0, data_->train - 1) / std::max<int64_t>(1, length_)
                            : data_->train;
  held_out_ = data_->is_text
                  ? std::max<int64_t>(0, data_->held_out - 1) / std::max<int64_t>(1, length_)
                  : data_->held_out;
  steps_ = samples_ / (batch_ * batches_);
  if (steps_ == 0)
    throw ArgumentError("data {}: expected at least the {} samples that a step trains ({} micro-batches of {}), got {}",
                        data_->path, batch_ * batches_, batches_, batch_, samples_);
}

void Feed::check_input(const Operator& op, const Tensor& tensor) const {
  const int64_t bound = integer_attribute(op.attributes, "index_bound", int64_t{1} << 40);
  const bool whole = is_whole(tensor);
  if (data_->is_text && !whole)
    throw ArgumentError("data {}: a text has symbols, input '{}' takes real numbers", data_->path, op.name);
  if (whole && bound < data_->classes)
    throw ArgumentError("data {}: input '{}' takes numbers below {}, the data have {}", data_->path, op.name, bound,
                        data_->classes - 1);
  if (!whole && elements_from(tensor.shape, 1) != data_->width)
    throw ArgumentError("data {}: input '{}' takes samples of {} numbers, the data have samples of {}", data_->path,
                        op.name, elements_from(tensor.shape, 1), data_->width);
}

/// The order of an epoch's samples.
std::shared_ptr<const std::vector<int32_t>> Feed::order_of(int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_) {
    auto made = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(samples_));
    std::iota(made->begin(), made->end(), 0);
    RandomStream random(seed_, "epoch", static_cast<uint64_t>(epoch));
    for (size_t i = made->size(); i > 1; --i) std::swap((*made)[i - 1], (*made)[random.below(i)]);
    order_ = std::move(made);
    epoch_ = epoch;
  }
  return order_;
}

at::Tensor Feed::take(const Operator& input, const Tensor& whole, int64_t batch,
                      const at::Tensor& spare) const {
  const int64_t each = steps_ * batches_ * batch_, first = batch * batch_;
  const auto order = order_of(first / each);
  const auto begin = order->begin() + static_cast<std::ptrdiff_t>(first % each);
  return read(input, whole, {begin, static_cast<size_t>(whole.shape.at(0))}, false,
              spare);
}

at::Tensor Feed::held_out(const Operator& input, const Tensor& whole, int64_t batch) const {
  std::vector<int32_t> samples;
  for (int64_t i = 0; i < whole.shape.at(0); ++i)
    samples.push_back(
        static_cast<int32_t>((batch * batch_ + i) % std::max<int64_t>(1, held_out_)));
  return read(input, whole, samples, true, {});
}

at::Tensor Feed::read(const Operator& input, const Tensor& whole,
                      std::span<const int32_t> samples, bool held_out,
                      const at::Tensor& spare) const {
  if (data_->is_text) {
    auto made = writable(spare, whole.shape, at::kLong);
    auto* numbers = made.data_ptr<int64_t>();
    if (is_positions(input, whole.shape)) {
      for (int64_t i = 0; i < made.numel(); ++i) numbers[i] = i % whole.shape.back();
      return made;
    }
    const int64_t shift = name_of(input).find("label") != std::string::npos ? 1 : 0;
    const int64_t first = held_out ? data_->train : 0;
    for (const int64_t sample : samples)
      for (int64_t i = 0; i < length_; ++i)
        *numbers++ = data_->symbols[static_cast<size_t>(first + sample * length_ + i + shift)];
    return made;
  }
  const int64_t first = held_out ? data_->train : 0;
  if (is_whole(whole)) {
    auto made = writable(spare, whole.shape, at::kLong);
    auto* numbers = made.data_ptr<int64_t>();
    for (const int64_t sample : samples)
      *numbers++ = data_->labels[static_cast<size_t>(first + sample)];
    return made;
  }
  auto made = writable(spare, whole.shape, at::kFloat);
  auto* numbers = made.data_ptr<float>();
  const auto width = static_cast<size_t>(data_->width);
  for (const int64_t sample : samples) {
    const size_t from = static_cast<size_t>(first + sample) * width;
    if (data_->bytes.empty())
      std::copy_n(data_->values.data() + from, width, numbers);
    else
      scale_bytes(data_->bytes.data() + from, width, data_->scale, numbers);
    numbers += width;
  }
  return made;
}

}  // namespace trinity
