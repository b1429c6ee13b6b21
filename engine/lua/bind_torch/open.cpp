#include "lua/bind_torch/open.h"

#include <string>

#include "libtorch/setup.h"
#include "lua/bind/module.h"

/// The entry of libtrinity_torch.so (engine/lua/bind/bind_late.cpp): completes trinity.core, the
/// table on top of the stack.
extern "C" void trinity_open_torch(lua_State* L) {
  using namespace trinity::lua;
  set_thread_setup(trinity::use_one_torch_thread);
  open_learn(L);
  open_tensor(L);
  open_distribute(L);
  open_execute(L);
  open_measure(L);
}

/// LibTorch's version and BLAS, for `trinity --version`.
extern "C" const char* trinity_torch_text() {
  static const std::string text = trinity::describe_torch().text;
  return text.c_str();
}
