// libFuzzer entry: trinity's own graph files. What is read must come back equal from what is
// written of it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "formats/graph_json.h"

using namespace trinity;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto graph = parse_graph_json({reinterpret_cast<const char*>(data), size}, "fuzz");
    const auto text = graph_to_json(graph);
    const auto again = parse_graph_json(text, "written");
    if (again.fingerprint() != graph.fingerprint() || graph_to_json(again) != text) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
