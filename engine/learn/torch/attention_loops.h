#pragma once

#include <cstdint>

namespace trinity {

/// The sums over h of v_h / (1 + query_th memory_jh), [steps, keys], of query [steps, width] and
/// memory [keys, width].
void attention_sums(int64_t steps, int64_t keys, int64_t width, const float* query,
                    const float* memory, const float* v, float* sums);

/// With r = 1 / (1 + query_th memory_jh) and g = gradient [steps, keys]: writes the sums over j of
/// g r (1 - r) to d_query, adds those over t to d_memory, and the sums over both of g r to d_v
/// [width].
void attention_slopes(int64_t steps, int64_t keys, int64_t width, const float* query,
                      const float* memory, const float* gradient, float* d_query, float* d_memory,
                      float* d_v);

}  // namespace trinity
