#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// Which code an input reached. C++ tells it where the engine is compiled with
// -fsanitize-coverage=trace-pc (cmake -DTRINITY_FUZZ=ON), Lua by a line hook in any build.

namespace trinity::fuzz {

/// Counters of one input: pairs of places, hashed, that followed each other.
inline constexpr size_t kPairs = 1 << 16;

/// Whether C++ was compiled for it.
bool counts_code();

/// Memory that outlives the process counts there from now on: `seen` of kPairs bytes, all zero at
/// the beginning of a campaign, and `places` of place_count() bytes.
void count_into(uint8_t* seen, uint8_t* places);
/// How many places the program's code may have: its size in bytes.
size_t place_count();

/// Forgets the input before.
void begin_input();
/// A place was reached.
void reach(uintptr_t place);
/// Adds the input's counters to `seen`: how many of them are new there.
size_t end_input();

/// Writes the places of C++ reached, one a line, as hexadecimal addresses for addr2line. Returns
/// how many there are.
size_t write_places(const uint8_t* places, const std::string& path);

}  // namespace trinity::fuzz
