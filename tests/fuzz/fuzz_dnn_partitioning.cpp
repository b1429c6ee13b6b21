// libFuzzer entry: an instance of dnn-partitioning and, after a zero byte, a split of it.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "formats/dnn_partitioning.h"

using namespace trinity;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto zero = text.find('\0');
  try {
    const auto instance = parse_dnn_partitioning(text.substr(0, zero), "fuzz", "fuzz");
    if (zero == std::string_view::npos) return 0;
    dnn_loads_s(instance, parse_dnn_split(text.substr(zero + 1), "split", instance));
  } catch (const Error&) {
  }
  return 0;
}
