#pragma once

#include "learn/agent_options.h"
#include "lua/host/check.h"

namespace trinity::lua {

/// Reads the options of Trinity's policy, its preset and seed among them.
AgentOptions agent_options_arg(lua_State* L, Fields& fields);

}  // namespace trinity::lua
