#include "learn/kernels.h"

namespace trinity {
namespace {

constexpr int kLanes = 4;
constexpr const char* kName = "plain";
#include "learn/kernels_body.h"

}  // namespace

const Kernels& plain_kernels() { return kKernels; }

}  // namespace trinity
