// Compiled for CPUs with fused multiply-adds and for all others. As operators of LibTorch
// these loops are ten passes over an intermediate of steps x keys x width.
#include "learn/torch/attention_loops.h"

namespace trinity {

[[gnu::target_clones("fma", "default")]] void attention_sums(int64_t steps, int64_t keys,
                                                             int64_t width, const float* query,
                                                             const float* memory, const float* v,
                                                             float* sums) {
  for (int64_t t = 0; t < steps; ++t) {
    const float* __restrict q = query + t * width;
    for (int64_t j = 0; j < keys; ++j) {
      const float* __restrict m = memory + j * width;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t h = 0; h < width; ++h) sum += v[h] / (1 + q[h] * m[h]);
      sums[t * keys + j] = sum;
    }
  }
}

[[gnu::target_clones("fma", "default")]] void attention_slopes(
    int64_t steps, int64_t keys, int64_t width, const float* query, const float* memory,
    const float* gradient, float* d_query, float* d_memory, float* d_v) {
  for (int64_t t = 0; t < steps; ++t) {
    const float* __restrict q = query + t * width;
    float* __restrict to_query = d_query + t * width;
    float* __restrict to_v = d_v;
    for (int64_t h = 0; h < width; ++h) to_query[h] = 0;
    for (int64_t j = 0; j < keys; ++j) {
      const float* __restrict m = memory + j * width;
      float* __restrict to_memory = d_memory + j * width;
      const float g = gradient[t * keys + j];
#pragma omp simd
      for (int64_t h = 0; h < width; ++h) {
        const float r = 1 / (1 + q[h] * m[h]), scaled = g * r, slope = scaled - scaled * r;
        to_query[h] += slope;
        to_memory[h] += slope;
        to_v[h] += scaled;
      }
    }
  }
}

}  // namespace trinity
