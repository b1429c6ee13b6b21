#include "kernels/kernels.h"

namespace trinity {
namespace {

constexpr int kLanes = 4;
constexpr const char* kName = "plain";
#include "kernels/kernels_body.h"

}  // namespace

const Kernels& plain_kernels() { return kKernels; }

}  // namespace trinity
