// libFuzzer entry: an instance of Piper.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "formats/piper.h"

using namespace trinity;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    parse_piper({reinterpret_cast<const char*>(data), size}, "fuzz", "fuzz");
  } catch (const Error&) {
  }
  return 0;
}
