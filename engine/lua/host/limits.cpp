#include "lua/host/limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "lua/host/stopper.h"

namespace trinity::lua {

/// LuaJIT never collects because an allocation failed, and on its own starts a collection only when
/// memory has doubled since the last. So growth beyond a mark hurries the collector, which runs at
/// its next check; setting its threshold is safe inside an allocation, collecting is not.
struct LuaMemory::Impl {
  size_t limit = 0;
  size_t reserve = 0;
  size_t used = 0;
  size_t mark = 0;
  bool reserve_open = false;
  lua_State* state = nullptr;

  static void* allocate(void* self, void* old, size_t old_bytes, size_t new_bytes) {
    auto& memory = *static_cast<Impl*>(self);
    if (new_bytes > 0) return memory.change(old, old_bytes, new_bytes);
    std::free(old);
    memory.used -= old_bytes;
    memory.mark = std::min(memory.mark, memory.next_mark());
    return nullptr;
  }

  void* change(void* old, size_t old_bytes, size_t new_bytes) {
    if (new_bytes > old_bytes) {
      const size_t wanted = used + (new_bytes - old_bytes);
      if (wanted > limit + (reserve_open ? reserve : 0)) {
        reserve_open = true;
        hurry(true);
        return nullptr;
      }
      if (wanted + reserve < limit) reserve_open = false;
      if (wanted > mark) {
        hurry(wanted > limit - limit / 4);
        used = wanted;
        mark = next_mark();
      }
    }
    void* memory = std::realloc(old, new_bytes);
    if (!memory) return nullptr;
    used += new_bytes - old_bytes;
    if (new_bytes < old_bytes) mark = std::min(mark, next_mark());
    return memory;
  }

  void hurry(bool at_once) {
    if (!state) return;
    // Work per step in percent of what was allocated; 0 means a whole collection.
    lua_gc(state, LUA_GCSETSTEPMUL, at_once ? 0 : 1000);
    lua_gc(state, LUA_GCRESTART, 0);
  }

  /// A quarter of what is left, but not so little that nothing but collections happens.
  size_t next_mark() const {
    const size_t left = used < limit ? limit - used : 0;
    return std::max(limit / 2, used + std::max(left / 4, limit / 64));
  }
};

LuaMemory::LuaMemory(size_t limit_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->limit = limit_bytes;
  impl_->reserve = std::clamp<size_t>(limit_bytes / 64, 65536, 1 << 20);
  impl_->mark = limit_bytes / 2;
}

LuaMemory::~LuaMemory() = default;

namespace {

/// Lua calls this for an error outside any pcall, as while the libraries are opened.
int refuse(lua_State* L) {
  const char* message = lua_tostring(L, -1);
  throw Error(message ? message : "error outside a protected call");
}

int collect(lua_State* L) {
  lua_gc(L, LUA_GCCOLLECT, 0);
  return 0;
}

}  // namespace

lua_State* LuaMemory::new_state() {
  if (impl_->limit == 0) return luaL_newstate();
  impl_->state = lua_newstate(Impl::allocate, impl_.get());
  if (impl_->state) lua_atpanic(impl_->state, refuse);
  return impl_->state;
}

size_t LuaMemory::limit_bytes() const { return impl_->limit; }

void LuaMemory::recover(lua_State* L) {
  if (impl_->limit == 0) return;
  impl_->reserve_open = true;
  if (lua_cpcall(L, collect, nullptr) != 0) lua_pop(L, 1);
  impl_->reserve_open = impl_->used + impl_->reserve >= impl_->limit;
}

bool is_memory_bounded() {
  constexpr rlim_t kLittleBytes = rlim_t{1} << 32;
  for (const auto kind : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(kind, &limit) == 0 && limit.rlim_cur < kLittleBytes) return true;
  }
  return false;
}

namespace {

int compile_nothing(lua_State*) { return 0; }

}  // namespace

void stop_compiling(lua_State* L) {
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  lua_getglobal(L, "jit");
  lua_pushcfunction(L, compile_nothing);
  lua_setfield(L, -2, "on");
  lua_pop(L, 1);
}

struct TimeLimit::Impl {
  Impl(lua_State* L, double seconds)
      : stopper(Stopper::of(L)), alarm(*stopper, std::clamp(seconds, 1e-6, 1e9)) {}
  std::shared_ptr<Stopper> stopper;
  Stopper::Alarm alarm;
};

TimeLimit::TimeLimit(lua_State* L, double seconds) {
  if (seconds > 0) impl_ = std::make_unique<Impl>(L, seconds);
}

TimeLimit::~TimeLimit() {
  if (impl_ && impl_->stopper->reason() == StopReason::time_limit) impl_->stopper->release();
}

}  // namespace trinity::lua
