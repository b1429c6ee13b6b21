#pragma once

// LibTorch's modules, which the policy's networks are made of.
#include "libtorch/torch.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#pragma GCC diagnostic pop
