#pragma once

#include <cstdint>
#include <string_view>

namespace trinity {

/// The finaliser of splitmix64: a bijection on 64-bit integers that scatters nearby values.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// An order-dependent 64-bit hash (FNV-1a over bytes), equal on all machines. Not thread-safe.
class Hasher {
 public:
  Hasher& add(std::string_view text) {
    for (const char c : text) byte(static_cast<unsigned char>(c));
    return add(static_cast<uint64_t>(text.size()));
  }
  Hasher& add(uint64_t value) {
    for (int i = 0; i < 8; ++i) byte(static_cast<unsigned char>(value >> (8 * i)));
    return *this;
  }
  uint64_t value() const { return state_; }

 private:
  void byte(unsigned char b) { state_ = (state_ ^ b) * 0x100000001b3ULL; }
  uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace trinity
