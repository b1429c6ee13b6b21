#include "fuzz/coverage.h"

#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

// Where the linker put the program.
extern "C" const char __executable_start, etext;

// What is called at every edge must not be instrumented itself.
#define UNCOUNTED __attribute__((no_sanitize_coverage, no_sanitize("address", "undefined")))

namespace trinity::fuzz {
namespace {

uint8_t g_counters[kPairs];
uint8_t* g_seen = nullptr;
uint8_t* g_places = nullptr;
uintptr_t g_last = 0;
bool g_counts_code = false;

/// A count as one bit: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.
uint8_t class_of(uint8_t count) {
  if (count < 4) return static_cast<uint8_t>(1 << count >> 1);
  int bit = 3;
  for (int limit = 8; bit < 6 && count >= limit; limit *= 2) ++bit;
  return static_cast<uint8_t>(1 << (count >= 128 ? 7 : bit));
}

}  // namespace

bool counts_code() { return g_counts_code; }

UNCOUNTED size_t place_count() { return static_cast<size_t>(&etext - &__executable_start); }

void count_into(uint8_t* seen, uint8_t* places) { g_seen = seen, g_places = places; }

void begin_input() {
  std::memset(g_counters, 0, sizeof g_counters);
  g_last = 0;
}

UNCOUNTED void reach(uintptr_t place) {
  const uintptr_t mixed = (place * 0x9e3779b97f4a7c15ULL) >> 40;
  auto& counter = g_counters[(mixed ^ g_last) % kPairs];
  if (counter < 255) ++counter;
  g_last = mixed >> 1;
}

size_t end_input() {
  size_t fresh = 0;
  for (size_t i = 0; i < kPairs; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, g_counters + i, sizeof word);
    if (word == 0) continue;
    for (size_t k = i; k < i + sizeof word; ++k) {
      const auto bits = static_cast<uint8_t>(class_of(g_counters[k]) & ~g_seen[k]);
      if (bits) ++fresh, g_seen[k] |= bits;
    }
  }
  return fresh;
}

size_t write_places(const uint8_t* places, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) throw FileError(path + ": cannot write");
  size_t count = 0;
  for (size_t i = 0; i < place_count(); ++i)
    if (places[i]) ++count, std::fprintf(file, "0x%zx\n", i);
  std::fclose(file);
  return count;
}

}  // namespace trinity::fuzz

extern "C" UNCOUNTED void __sanitizer_cov_trace_pc() {
  using namespace trinity::fuzz;
  const auto place = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) -
                     reinterpret_cast<uintptr_t>(&__executable_start);
  g_counts_code = true;
  if (!g_places) return;
  if (place < place_count()) g_places[place] = 1;
  reach(place);
}
