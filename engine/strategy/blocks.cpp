#include "strategy/blocks.h"

#include <algorithm>

namespace trinity {

int64_t block_elements(const Block& block) {
  int64_t product = 1;
  for (const auto& range : block) product *= range.length();
  return product;
}

Block whole_block(const std::vector<int64_t>& shape) {
  Block block;
  for (const int64_t extent : shape) block.push_back({0, extent});
  return block;
}

bool has_lengths(const Block& block, const std::vector<int64_t>& shape) {
  return block.empty() ||
         std::equal(block.begin(), block.end(), shape.begin(), shape.end(),
                    [](const Range& range, int64_t extent) { return range.length() == extent; });
}

void take_lengths(const Block& block, SharedList<int64_t>& shape) {
  if (has_lengths(block, shape)) return;
  std::vector<int64_t> lengths;
  lengths.reserve(block.size());
  for (const auto& range : block) lengths.push_back(range.length());
  shape = std::move(lengths);
}

Block overlap(const Block& a, const Block& b) {
  Block both;
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t begin = std::max(a[i].begin, b[i].begin);
    both.push_back({begin, std::max(begin, std::min(a[i].end, b[i].end))});
  }
  return both;
}

bool lies_in(const Block& block, const Block& other) {
  for (size_t i = 0; i < block.size(); ++i) {
    const int64_t begin = std::max(block[i].begin, other[i].begin);
    if (begin != block[i].begin ||
        std::max(begin, std::min(block[i].end, other[i].end)) != block[i].end)
      return false;
  }
  return true;
}

bool is_empty(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Range& r) { return r.length() <= 0; });
}

int64_t shared_elements(const Block& a, const Block& b) {
  int64_t product = 1;
  for (size_t i = 0; i < a.size(); ++i)
    product *=
        std::max<int64_t>(0, std::min(a[i].end, b[i].end) - std::max(a[i].begin, b[i].begin));
  return product;
}

namespace {

std::shared_ptr<const IterationSpace> with_copies(IterationSpace space) {
  space.dimensions.push_back({"copies", 1, DimensionRole::rows, false});
  return std::make_shared<const IterationSpace>(std::move(space));
}

}  // namespace

OperatorCut::OperatorCut(IterationSpace space, std::vector<int32_t> factors, int32_t copies,
                         bool padded)
    : OperatorCut(with_copies(std::move(space)), std::move(factors), copies, padded) {}

OperatorCut::OperatorCut(std::shared_ptr<const IterationSpace> space, std::vector<int32_t> factors,
                         int32_t copies, bool padded)
    : space_(std::move(space)), factors_(std::move(factors)), padded_(padded) {
  factors_.reserve(space_->dimensions.size());
  factors_.resize(space_->dimensions.size() - 1, 1);
  factors_.push_back(copies);
  stride_.resize(factors_.size());
  for (size_t d = factors_.size(); d-- > 0;) {
    stride_[d] = parts_;
    parts_ *= factors_[d];
  }
}

std::vector<int32_t> OperatorCut::coordinates(int32_t part) const {
  std::vector<int32_t> at(factors_.size());
  for (size_t d = 0; d < at.size(); ++d) at[d] = coordinate(part, d);
  return at;
}

bool OperatorCut::cuts(const TensorAxes& axes) const {
  return std::any_of(axes.begin(), axes.end(), [this](const auto& dimensions) {
    return std::any_of(dimensions.begin(), dimensions.end(),
                       [this](int32_t d) { return factors_[static_cast<size_t>(d)] > 1; });
  });
}

bool OperatorCut::same_blocks(const TensorAxes& axes, const OperatorCut& other,
                              const TensorAxes& others) const {
  if (padded_ != other.padded_ || parts_ != other.parts_) return false;
  const auto next = [](const OperatorCut& cut, const std::vector<int32_t>& dimensions, size_t& i) {
    while (i < dimensions.size() && cut.factors_[static_cast<size_t>(dimensions[i])] == 1) ++i;
    return i < dimensions.size() ? static_cast<size_t>(dimensions[i++]) : SIZE_MAX;
  };
  static const std::vector<int32_t> kNone;
  for (size_t axis = 0; axis < std::max(axes.size(), others.size()); ++axis) {
    const auto& mine = axis < axes.size() ? axes[axis] : kNone;
    const auto& theirs = axis < others.size() ? others[axis] : kNone;
    for (size_t i = 0, j = 0; true;) {  // dimensions with several parts
      const size_t a = next(*this, mine, i), b = next(other, theirs, j);
      if (a == SIZE_MAX && b == SIZE_MAX) break;
      if (a == SIZE_MAX || b == SIZE_MAX || factors_[a] != other.factors_[b] ||
          stride_[a] != other.stride_[b])
        return false;
    }
  }
  return true;
}

int64_t OperatorCut::length(size_t dimension, int32_t part) const {
  const auto d = static_cast<int32_t>(dimension);
  return range(space_->dimensions[dimension].size, {&d, 1}, part).length();
}

double OperatorCut::share(int32_t part) const {
  double share = 1;
  for (size_t d = 0; d + 1 < factors_.size(); ++d) {
    const int64_t size = space_->dimensions[d].size;
    if (size > 0) share *= static_cast<double>(length(d, part)) / static_cast<double>(size);
  }
  return share;
}

std::vector<int32_t> OperatorCut::missing(const TensorAxes& axes) const {
  std::vector<int32_t> found;
  for (size_t d = 0; d + 1 < factors_.size(); ++d)
    if (factors_[d] > 1 && !IterationSpace::carries(axes, static_cast<int32_t>(d)))
      found.push_back(static_cast<int32_t>(d));
  return found;
}

std::vector<int32_t> OperatorCut::groups(const std::vector<int32_t>& dimensions) const {
  const auto count = static_cast<size_t>(parts_);
  std::vector<int32_t> group(count), number(count, -1);  // number: by the first part of a group
  int32_t groups = 0;
  for (int32_t part = 0; part < parts_; ++part) {
    int32_t first = part;
    for (const int32_t d : dimensions) {
      const auto i = static_cast<size_t>(d);
      first -= coordinate(part, i) * stride_[i];
    }
    auto& known = number[static_cast<size_t>(first)];
    if (known < 0) known = groups++;
    group[static_cast<size_t>(part)] = known;
  }
  return group;
}

}  // namespace trinity
