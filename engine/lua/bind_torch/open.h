#pragma once

#include <lua.hpp>

#include "execute/executor.h"
#include "lua/host/check.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<Executor> = "executor";

/// Each adds its functions to the table on top of the stack and registers its types.
void open_tensor(lua_State* L);
void open_distribute(lua_State* L);
void open_execute(lua_State* L);
void open_measure(lua_State* L);
void open_agent(lua_State* L);

/// Replaces LibTorch's allocator by one that counts, once; runs LibTorch on one thread
/// (bind_tensor_memory.cpp).
void count_tensor_memory();

}  // namespace trinity::lua
