#include "lua/bind_torch/open.h"

#include <string>

#include "libtorch/setup.h"
#include "lua/bind/module.h"

namespace trinity::lua {
namespace {

/// describe_torch() -> LibTorch and its BLAS as text, whether the BLAS is slow
int torch_describe(lua_State* L) {
  const auto description = describe_torch();
  lua_pushstring(L, description.text.c_str());
  lua_pushboolean(L, description.slow);
  return 2;
}

constexpr luaL_Reg kTorchFunctions[] = {TRINITY_BIND("describe_torch", torch_describe)};

}  // namespace
}  // namespace trinity::lua

/// The entry of libtrinity_torch.so (engine/lua/bind/bind_late.cpp): completes trinity.core, the
/// table on top of the stack.
extern "C" void trinity_open_torch(lua_State* L) {
  using namespace trinity::lua;
  set_thread_setup(trinity::use_one_torch_thread);
  register_functions(L, kTorchFunctions);
  open_tensor(L);
  open_distribute(L);
  open_execute(L);
  open_measure(L);
  open_agent(L);
}

/// LibTorch's version and BLAS, for `trinity --version`.
extern "C" const char* trinity_torch_text() {
  static const std::string text = trinity::describe_torch().text;
  return text.c_str();
}
