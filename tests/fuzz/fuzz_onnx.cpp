// Reads any bytes as an ONNX model; only errors of trinity may come out. Built with libFuzzer:
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -DONNX_ML=1 -DONNX_NAMESPACE=onnx
//     -Iengine tests/fuzz/fuzz_onnx.cpp engine/base/*.cpp engine/graph/*.cpp
//     engine/formats/onnx*.cpp -lfmt -lonnx_proto -lprotobuf -lpthread

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "formats/onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    trinity::parse_onnx({reinterpret_cast<const char*>(data), size}, "fuzz.onnx", "fuzz");
  } catch (const trinity::Error&) {
  }
  return 0;
}
