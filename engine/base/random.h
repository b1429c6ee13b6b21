#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace trinity {

/// A stream of random numbers (xoshiro256**). There is no global generator: every stream is made
/// from a seed and a name, so adding a consumer never changes the numbers of another. Not
/// thread-safe.
class RandomStream {
 public:
  /// Stream `name`, number `index`, of the run with this seed.
  RandomStream(uint64_t seed, std::string_view name, uint64_t index = 0)
      : RandomStream(Hasher().add(seed).add(name).add(index).value()) {}

  explicit RandomStream(uint64_t key) {
    for (auto& word : state_) word = key = mix64(key);
  }

  /// 64 random bits.
  uint64_t next() {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  /// Uniform in [0, 1), 53 random bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Uniform integer in [0, bound), bound > 0; unbiased.
  uint64_t below(uint64_t bound) {
    const uint64_t limit = -bound % bound;
    for (;;) {
      const uint64_t draw = next();
      if (draw >= limit) return draw % bound;
    }
  }

  /// Standard normal deviate (Box-Muller, one of each pair).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  uint64_t state_[4];
};

}  // namespace trinity
