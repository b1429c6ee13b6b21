// Compiled with contraction into fused multiply-adds (CMakeLists.txt), by hand for vectors:
// node2vec spends its time here.
#include "features/skip_gram.h"

namespace trinity {
namespace {

constexpr int64_t kLanes = 8;
using Vector [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
using Loose [[gnu::vector_size(sizeof(float) * kLanes), gnu::aligned(4), gnu::may_alias]] = float;

/// The first `count` numbers, then zeros.
[[gnu::always_inline]] inline void load(Vector& to, const float* from, int64_t count) {
  to = Vector{};
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

[[gnu::always_inline]] inline void store(float* to, const Vector& from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// By a rational approximation of tanh of degree 13 over 6, as in Eigen's ptanh; within 4e-7.
[[gnu::always_inline]] inline float sigmoid(float x) {
  constexpr float bound = 7.90531110763549805f;
  x *= 0.5f;
  x = x > bound ? bound : x;
  x = x < -bound ? -bound : x;
  const float s = x * x;
  float p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * s + -8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return x * p / q * 0.5f + 0.5f;
}

}  // namespace

[[gnu::target_clones("fma", "default")]] void skip_gram(int64_t width, float rate, float label,
                                                        const float* v, float* c, float* step) {
  const int64_t whole = width / kLanes * kLanes, rest = width - whole;
  Vector dot = {}, left = {}, right = {}, added = {};
  for (int64_t i = 0; i < whole; i += kLanes)
    dot += *reinterpret_cast<const Loose*>(v + i) * *reinterpret_cast<const Loose*>(c + i);
  if (rest > 0) {
    load(left, v + whole, rest);
    load(right, c + whole, rest);
    load(added, step + whole, rest);
    dot += left * right;
  }
  float sum = 0;
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sum += dot[i];
  const float g = rate * (label - sigmoid(sum));
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Vector other = *reinterpret_cast<const Loose*>(c + i);
    *reinterpret_cast<Loose*>(step + i) += g * other;
    *reinterpret_cast<Loose*>(c + i) = other + g * *reinterpret_cast<const Loose*>(v + i);
  }
  if (rest > 0) {
    store(step + whole, added + g * right, rest);
    store(c + whole, right + g * left, rest);
  }
}

}  // namespace trinity
