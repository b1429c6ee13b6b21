#pragma once

#include "distribute/job.h"
#include "lua/host/check.h"

// How a job of several processes appears in Lua: bind_distribute.cpp makes one, others take it.

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<Job> = "job";
template <>
inline constexpr const char* kTypeName<Work> = "work";

}  // namespace trinity::lua
