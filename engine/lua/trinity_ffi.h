#pragma once

#include <cstdint>

// Plain data that scripts read without a call: declared once, here, for C++ and (as text) for
// LuaJIT's FFI. ARRAY is `?` for the FFI, whose ffi.new() then takes the length, and empty for C++.
// FIXED is `const` for the FFI, which then refuses to write, and empty for C++, which fills it.
// NOLINTBEGIN(bugprone-macro-parentheses): FIXED is a keyword
#define TRINITY_FFI_STRUCTS(ARRAY, FIXED)   \
  struct trinity_int32_array {              \
    FIXED uint32_t magic;                   \
    FIXED int32_t length;                   \
    int32_t data[ARRAY];                    \
  };                                        \
  struct trinity_double_array {             \
    FIXED uint32_t magic;                   \
    FIXED int32_t length;                   \
    double data[ARRAY];                     \
  };                                        \
  struct trinity_int32_span {               \
    FIXED uint32_t magic;                   \
    FIXED int32_t length;                   \
    const int32_t* FIXED data;              \
  };                                        \
  struct trinity_metrics {                  \
    FIXED uint32_t magic;                   \
    FIXED int32_t device_count;             \
    FIXED double step_time_s;               \
    FIXED double peak_memory_bytes;         \
    FIXED double peak_communication_bytes;  \
    FIXED double total_communication_bytes; \
    FIXED double excess_memory_bytes;       \
    FIXED double transfers;                 \
    FIXED bool feasible;                    \
    FIXED bool rejected;                    \
    FIXED double device[ARRAY];             \
  };
// NOLINTEND(bugprone-macro-parentheses)

namespace trinity::lua {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
TRINITY_FFI_STRUCTS(, )
#pragma GCC diagnostic pop

#define TRINITY_FFI_TEXT_2(...) #__VA_ARGS__
#define TRINITY_FFI_TEXT_1(...) TRINITY_FFI_TEXT_2(__VA_ARGS__)
/// What ffi.cdef receives.
inline constexpr const char* kFfiDeclarations = TRINITY_FFI_TEXT_1(TRINITY_FFI_STRUCTS(?, const));

/// First word of every struct, so that a wrong cdata is refused instead of read.
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
static_assert(sizeof(trinity_int32_span) == 16 && sizeof(trinity_metrics) == 64);

}  // namespace trinity::lua
