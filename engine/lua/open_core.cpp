#include "lua/bind/module.h"

#include "lua/host/strict.h"

namespace trinity::lua {

int open_core(lua_State* L) {
  lua_newtable(L);
  open_base(L);
  open_strict(L);
  open_graph(L);
  open_algorithms(L);
  open_formats(L);
  open_cluster(L);
  open_problem(L);
  open_simulator(L);
  open_search(L);
  open_ranker(L);
  open_moves(L);
  open_selection(L);
  open_pase(L);
  open_splits(L);
  open_strategy(L);
  open_parallel(L);
  open_features(L);
  open_pipeline(L);
  open_run(L);
  open_late(L);
  set_field(L, "version", TRINITY_VERSION);
  lua_getfield(L, LUA_REGISTRYINDEX, kHomeKey);
  lua_setfield(L, -2, "home");
  set_field(L, "ffi_declarations", kFfiDeclarations);
  lua_getfield(L, LUA_REGISTRYINDEX, kBindingsKey);
  lua_setfield(L, -2, "bindings");
  lua_newtable(L);
  set_field(L, "int32_array", static_cast<double>(Magic::int32_array));
  set_field(L, "double_array", static_cast<double>(Magic::double_array));
  set_field(L, "int32_span", static_cast<double>(Magic::int32_span));
  set_field(L, "metrics", static_cast<double>(Magic::metrics));
  lua_setfield(L, -2, "magic");
  return 1;
}

}  // namespace trinity::lua
