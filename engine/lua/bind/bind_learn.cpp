#include "learn/agent_options.h"

#include "lua/bind/agent_arg.h"
#include "lua/bind/module.h"
#include "lua/bind/option_list.h"
#include "lua/bind/option_reader.h"

namespace trinity::lua {
namespace {

AgentOptions read_preset(const std::string& name) {
  if (name == "default") return {};
  if (name == "paper") return AgentOptions::paper();
  if (name == "code") return AgentOptions::code();
  if (name == "scratch") return AgentOptions::scratch();
  throw ArgumentError("unknown preset '{}'{} (known: default, paper, code, scratch)", name,
                      suggestion(name, {"default", "paper", "code", "scratch"}));
}

/// agent_options() -> the agent's options but for preset and seed, as OptionList has them; options of
/// node2vec are "node2vec.NAME"
int agent_option_list(lua_State* L) {
  const AgentOptions options;
  lua_newtable(L);
  each_option(options, OptionList{L});
  return 1;
}

/// check_agent(options, ranks): refuses what agent() would, before anything is computed.
void agent_check(lua_State* L, Options<"agent options"> fields) {
  const auto options = agent_options_arg(L, fields);
  fields.refuse_unknown();
  options.check(static_cast<int>(integer_arg(L, 2, "ranks", 1, 1 << 20)));
}

constexpr luaL_Reg kLearnFunctions[] = {TRINITY_BIND("check_agent", agent_check),
                                        TRINITY_BIND("agent_options", agent_option_list)};

}  // namespace

AgentOptions agent_options_arg(lua_State* L, Fields& fields) {
  AgentOptions options = read_preset(fields.string("preset", "default"));
  options.seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  read_fields(L, fields, options.features.node2vec.dimensions,
              [&](const OptionReader& reader) { each_option(options, reader); });
  return options;
}

void open_learn(lua_State* L) { register_functions(L, kLearnFunctions); }

}  // namespace trinity::lua
