// libFuzzer entry: a PipeDream profile.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "formats/pipedream.h"
#include "graph/training.h"

using namespace trinity;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    lower_to_training(parse_pipedream(text, "fuzz", "fuzz"), {});
  } catch (const Error&) {
  }
  return 0;
}
