#pragma once

#include <cstdint>

namespace trinity {

/// Skip-gram's step for the pair of vectors v and c [width]: with g = rate * (label - sigmoid(v .
/// c)), adds g c to `step` and g v to c. Compiled for AVX2 with fused multiply-adds and for every
/// processor.
void skip_gram(int64_t width, float rate, float label, const float* v, float* c, float* step);

}  // namespace trinity
