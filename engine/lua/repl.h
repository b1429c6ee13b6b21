#pragma once

#include <string>
#include <vector>

#include "lua/host/runner.h"

// The interactive prompt: lines through libedit with history and completion when standard input is
// a terminal, plain lines otherwise; results printed without `=`; incomplete input continues at
// `>>`.

namespace trinity::lua {

/// Names that complete the end of `line`: globals, then fields and methods of the value before the
/// last '.' or ':' (through __index tables; nothing is called), sorted. Each is the whole word.
/// Unprotected: call it below lua_pcall.
std::vector<std::string> completions(lua_State* L, const std::string& line);

/// Names for the word at the end of `line` that lib/trinity/command/prompt.lua knows: names in
/// quotes, fields of metrics; false where it knows none of that kind.
bool completed_by_library(lua_State* L, const std::string& line, const std::string& word,
                          std::vector<std::string>& found);

/// Runs the prompt until end of input or os.exit. Returns the exit status. `always_prompt` prints
/// prompts also where standard input is no terminal.
int run_repl(ScriptRunner& runner, bool always_prompt);

}  // namespace trinity::lua
