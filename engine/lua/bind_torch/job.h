#pragma once

#include "distribute/job.h"
#include "lua/host/check.h"

// A job of several processes in Lua: bind_distribute.cpp makes it, other bindings use it.

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<Job> = "job";
template <>
inline constexpr const char* kTypeName<Work> = "work";

}  // namespace trinity::lua
