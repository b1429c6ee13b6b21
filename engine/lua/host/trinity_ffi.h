#pragma once

#include <cstdint>

// Plain data that scripts read without a call: declared once, here, for C++ and (as text) for
// LuaJIT's FFI. ARRAY is `?` for the FFI, whose ffi.new() then takes the length, and empty for C++.
// FIXED is `const` for the FFI, which then refuses to write, and empty for C++, which fills it.
// INT32 and DOUBLE are the elements: numbers for C++; for the FFI constant structs of their size
// without members, so that a script that reaches `data` or a pointer to it can neither read nor
// write there. The library casts to what they are, after checking the index
// (lib/trinity/base/array.lua). NOLINTBEGIN(bugprone-macro-parentheses): FIXED is a keyword
#define TRINITY_FFI_STRUCTS(ARRAY, FIXED, INT32, DOUBLE) \
  struct trinity_int32_array {                           \
    FIXED uint32_t magic;                                \
    FIXED int32_t length;                                \
    INT32 data[ARRAY];                                   \
  };                                                     \
  struct trinity_double_array {                          \
    FIXED uint32_t magic;                                \
    FIXED int32_t length;                                \
    DOUBLE data[ARRAY];                                  \
  };                                                     \
  struct trinity_int32_span {                            \
    FIXED uint32_t magic;                                \
    FIXED int32_t length;                                \
    const INT32* FIXED data;                             \
  };                                                     \
  struct trinity_metrics {                               \
    FIXED uint32_t magic;                                \
    FIXED int32_t device_count;                          \
    FIXED double step_time_s;                            \
    FIXED double peak_memory_bytes;                      \
    FIXED double peak_communication_bytes;               \
    FIXED double total_communication_bytes;              \
    FIXED double excess_memory_bytes;                    \
    FIXED double transfers;                              \
    FIXED double samples;                                \
    FIXED bool feasible;                                 \
    FIXED bool rejected;                                 \
    DOUBLE device[ARRAY];                                \
  };
// NOLINTEND(bugprone-macro-parentheses)

namespace trinity::lua {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
TRINITY_FFI_STRUCTS(, , int32_t, double)
#pragma GCC diagnostic pop

#define TRINITY_FFI_TEXT_2(...) #__VA_ARGS__
#define TRINITY_FFI_TEXT_1(...) TRINITY_FFI_TEXT_2(__VA_ARGS__)
/// The text that ffi.cdef receives.
inline constexpr const char* kFfiDeclarations =
    "struct trinity_int32_element { int : 32; };"
    "struct trinity_double_element { int : 32; int : 32; } __attribute__((aligned(8)));" TRINITY_FFI_TEXT_1(
        TRINITY_FFI_STRUCTS(?, const, const struct trinity_int32_element,
                            const struct trinity_double_element));

/// First word of every struct: what it is. See structs.h.
enum class Magic : uint32_t {
  int32_array = 0x74723101,
  double_array = 0x74723102,
  int32_span = 0x74723103,
  metrics = 0x74723104,
};

/// Values per device in trinity_metrics::device, in this order.
/// compute_busy_s, send_busy_s, memory_bytes, sent_bytes, received_bytes
inline constexpr int kDeviceFields = 5;

static_assert(sizeof(trinity_int32_array) == 8 && sizeof(trinity_double_array) == 8);
static_assert(sizeof(trinity_int32_span) == 16 && sizeof(trinity_metrics) == 72);

}  // namespace trinity::lua
