#include "lua/host/runner.h"

#include <cstdio>

#include "base/units.h"
#include "base/utf8.h"
#include "lua/host/interrupt.h"
#include "lua/host/process_limits.h"

namespace trinity::lua {
namespace {

int call_body(lua_State* L) {
  (*static_cast<const std::function<void(lua_State*)>*>(lua_touserdata(L, 1)))(L);
  return 0;
}

std::string text_on_top(lua_State* L) {
  size_t length = 0;
  const char* text = lua_tolstring(L, -1, &length);
  return text ? std::string(text, length) : "(error object is not a string)";
}

void print_line(const std::string& raw) {
  const auto text = printable(raw);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fputc('\n', stderr);
}

}  // namespace

int report(const Outcome& outcome) {
  if (!outcome.error) return outcome.status;
  std::fflush(stdout);
  print_line("trinity: " + outcome.error->message);
  if (!outcome.error->traceback.empty()) print_line(outcome.error->traceback);
  return outcome.status;
}

std::optional<ScriptError> ScriptRunner::protect(const std::function<void(lua_State*)>& body) {
  const int top = lua_gettop(L_);
  const int status = lua_cpcall(L_, call_body, const_cast<std::function<void(lua_State*)>*>(&body));
  if (status == 0) return std::nullopt;
  ScriptError error{text_on_top(L_), "", false};
  lua_settop(L_, top);
  return error;
}

Outcome ScriptRunner::run(const Load& load, const std::vector<std::string>& arguments,
                          const Use& use) {
  std::optional<ScriptError> error;
  const auto call = [&](lua_State* L) {
    if (load(L) != 0) {
      error = ScriptError{text_on_top(L), "", false};
      return;
    }
    luaL_checkstack(L, static_cast<int>(arguments.size()) + LUA_MINSTACK, "too many arguments");
    for (const auto& argument : arguments) lua_pushlstring(L, argument.data(), argument.size());
    const int first = lua_gettop(L) - static_cast<int>(arguments.size());
    error = call_script(L, static_cast<int>(arguments.size()));
    if (!error && use) use(L, first);
  };
  std::optional<ScriptError> broken;
  {
    const HardTimeLimit hard(hard_limit_s_);
    const TimeLimit limit(L_, time_limit_s_);
    broken = protect(call);
  }
  return finish(broken ? std::move(broken) : std::move(error));
}

Outcome ScriptRunner::finish(std::optional<ScriptError> error) {
  if (error && error->message.ends_with("not enough memory")) {
    memory_.recover(L_);
    if (const auto limit = memory_.limit_bytes(); limit > 0)
      error->message += " (limit " + format_bytes(static_cast<int64_t>(limit)) + ")";
  }
  Outcome outcome{error ? (error->usage ? 2 : 1) : 0, std::move(error), false};
  if (handle_interrupts_ && was_interrupted()) {
    if (outcome.error) outcome.error->traceback.clear();
    outcome.status = stop_status();
    forget_interrupt(L_);
  }
  if (const auto status = take_exit(L_)) outcome = {*status, std::nullopt, true};
  return outcome;
}

}  // namespace trinity::lua
