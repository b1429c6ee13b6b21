// Compiled with -mavx2 -mfma where the compiler knows them (CMakeLists.txt).
#include "kernels/kernels.h"

namespace trinity {

#ifdef __AVX2__
namespace {

constexpr int kLanes = 8;
constexpr const char* kName = "avx2";
#include "kernels/kernels_body.h"

}  // namespace

const Kernels& kernels() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has ? kKernels : plain_kernels();
}
#else
const Kernels& kernels() { return plain_kernels(); }
#endif

}  // namespace trinity
