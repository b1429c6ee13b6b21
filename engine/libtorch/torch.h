#pragma once

// The one place that includes LibTorch, so that it is parsed once (a precompiled header).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#include <torch/torch.h>
#pragma GCC diagnostic pop
