#pragma once

// LibTorch's optimisers, which scripts train networks of their own with.
#include "libtorch/torch.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#pragma GCC diagnostic pop
