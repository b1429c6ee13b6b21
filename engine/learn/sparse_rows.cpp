#include <algorithm>

#include "kernels/kernels.h"

namespace trinity {

void SparseRows::assign(int64_t rows, int64_t depth, const float* a) {
  rows_ = rows;
  depth_ = depth;
  column_.clear();
  value_.clear();
  end_.clear();
  const int64_t blocks = (rows + 5) / 6;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t first = rows * i / blocks, count = rows * (i + 1) / blocks - first;
    const float* block = a + first * depth;
    for (int64_t k = 0; k < depth; ++k) {
      bool any = false;
      for (int64_t r = 0; r < count; ++r) any = any || block[r * depth + k] != 0;
      if (!any) continue;
      column_.push_back(static_cast<int32_t>(k));
      for (int64_t r = 0; r < 6; ++r) value_.push_back(r < count ? block[r * depth + k] : 0.0f);
    }
    end_.push_back(static_cast<int64_t>(column_.size()));
  }
}

}  // namespace trinity
