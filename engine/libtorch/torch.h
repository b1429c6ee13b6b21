#pragma once

// The one place that includes what all users of LibTorch need of it, parsed once (a precompiled
// header): tensors and autograd. Networks and optimisers, half as much again, are included where
// they are used.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>
#pragma GCC diagnostic pop
