#pragma once

#include "distribute/gradient_buckets.h"
#include "distribute/job.h"
#include "lua/host/check.h"

// How a job of several processes appears in Lua: bind_distribute.cpp makes one, others take it.

namespace trinity::lua {

template <>
struct TypeName<Job> {
  static constexpr auto value = "job";
};
template <>
struct TypeName<Work> {
  static constexpr auto value = "work";
};
template <>
struct TypeName<GradientBuckets> {
  static constexpr auto value = "gradient buckets";
};

}  // namespace trinity::lua
