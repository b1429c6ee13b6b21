#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/gzip.h"
#include "lua/bind/module.h"
#include "lua/host/interrupt.h"

namespace trinity::lua {
namespace {

int g_threads = 0;
void (*g_thread_setup)() = nullptr;
ThreadPool* g_pool = nullptr;  // lives as long as the process: idle workers need no farewell

int base_clock_s(lua_State* L) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return push_number(L, std::chrono::duration<double>(now).count());
}

int base_read_file(lua_State* L) { return push_text(L, read_file(string_arg(L, 1, "path"))); }

/// read_compressed(path): what a file in gzip's format holds, at most 1 GB.
int base_read_compressed(lua_State* L) {
  const auto path = string_arg(L, 1, "path");
  return push_text(L, decompressed(path, read_file(path), size_t{1} << 30));
}

Durability durability_arg(lua_State* L, int index, Durability otherwise) {
  if (lua_isnoneornil(L, index)) return otherwise;
  const auto word = string_arg(L, index, "durability");
  if (word != "synced" && word != "unsynced")
    throw WrongArgument(index, "durability", "expected 'synced' or 'unsynced', got '" + word + "'");
  return word == "synced" ? Durability::synced : Durability::unsynced;
}

/// write_file(path, content[, 'unsynced'])
int base_write_file(lua_State* L) {
  write_file(string_arg(L, 1, "path"), string_arg(L, 2, "content"),
             durability_arg(L, 3, Durability::synced));
  return 0;
}

/// append_file(path, content[, 'synced'])
int base_append_file(lua_State* L) {
  append_file(string_arg(L, 1, "path"), string_arg(L, 2, "content"),
              durability_arg(L, 3, Durability::unsynced));
  return 0;
}

/// check_output(path): refuses what write_file would, before the work whose result goes there.
int base_check_output(lua_State* L) {
  check_output(string_arg(L, 1, "path"));
  return 0;
}

/// exists(path): whether it can be opened for reading
int base_exists(lua_State* L) { return push_boolean(L, is_readable(string_arg(L, 1, "path"))); }

int base_list_folder(lua_State* L) {
  const auto names = list_folder(string_arg(L, 1, "path"));
  lua_newtable(L);
  for (size_t i = 0; i < names.size(); ++i) {
    lua_pushstring(L, names[i].c_str());
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

/// printable(text): as a terminal shows it and does nothing else
int base_printable(lua_State* L) { return push_text(L, printable(string_arg(L, 1, "text"))); }

int base_suggestion(lua_State* L) {
  table_arg(L, 2, "candidates");
  std::vector<std::string> candidates;
  for_each(L, 2, [&](int) { candidates.push_back(string_arg(L, -1, "candidate")); });
  lua_pushstring(L, suggestion(string_arg(L, 1, "name"), candidates).c_str());
  return 1;
}

int base_format_bytes(lua_State* L) {
  const double bytes = number_arg(L, 1, "bytes");
  if (!(std::abs(bytes) < 9e18))
    throw WrongArgument(1, "bytes", fmt::format("expected a number of bytes, got {}", bytes));
  lua_pushstring(L, format_bytes(static_cast<int64_t>(bytes)).c_str());
  return 1;
}

int base_threads(lua_State* L) { return push_number(L, shared_pool().threads()); }

/// set_threads(count): the number of worker threads, 0 for one per core; an error once they work.
int base_set_threads(lua_State* L) {
  set_threads(static_cast<int>(integer_arg(L, 1, "threads", 0, 4096)));
  return 0;
}

/// A search tells that it will stop by itself when asked: Ctrl-C then only sets the flag.
int base_begin_search(lua_State*) {
  begin_search();
  return 0;
}

int base_end_search(lua_State*) {
  end_search();
  return 0;
}

/// Searches one after the other whose caller goes on with the results so far.
int base_begin_series(lua_State*) {
  begin_series();
  return 0;
}

int base_end_series(lua_State*) {
  end_series();
  return 0;
}

/// keep_what_is_found(): as in interrupt.h, for commands.
int base_keep_what_is_found(lua_State*) {
  keep_what_is_found();
  return 0;
}

int base_keeps_what_is_found(lua_State* L) { return push_boolean(L, keeps_what_is_found()); }

/// begin_limit(seconds): what runs until end_limit() is to end by then. Both as in interrupt.h.
int base_begin_limit(lua_State* L) {
  begin_limit(number_arg(L, 1, "seconds"));
  return 0;
}

/// end_limit() -> whether the time was up
int base_end_limit(lua_State* L) { return push_boolean(L, end_limit()); }

/// Of a search that ranks of a job share, as in interrupt.h.
int base_begin_agreement(lua_State*) {
  begin_agreement();
  return 0;
}

int base_end_agreement(lua_State*) {
  end_agreement();
  return 0;
}

int base_noted_status(lua_State* L) { return push_number(L, noted_status()); }

int base_accept_stop(lua_State* L) {
  accept_stop(static_cast<int>(integer_arg(L, 1, "status", kInterruptedStatus, kEndedStatus)));
  return 0;
}

int base_stop_requested(lua_State* L) { return push_boolean(L, stop_requested()); }

/// How many engine objects scripts hold, neither closed nor collected: for tests of leaks.
int base_open_objects(lua_State* L) {
  return push_number(L, static_cast<double>(open_objects.load()));
}

/// The position "file:line: " that an error raised now should carry.
int base_position(lua_State* L) {
  push_position(L);
  return 1;
}

int base_random(lua_State* L) {
  const auto seed = integer_arg(L, 1, "seed", 0, int64_t{1} << 53);
  const auto index = lua_isnoneornil(L, 3) ? 0 : integer_arg(L, 3, "index", 0, int64_t{1} << 53);
  push_object(L,
              std::make_shared<RandomStream>(static_cast<uint64_t>(seed), string_arg(L, 2, "name"),
                                             static_cast<uint64_t>(index)));
  return 1;
}

int random_uniform(lua_State* L) {
  return push_number(L, object_arg<RandomStream>(L, 1).uniform());
}

int random_normal(lua_State* L) { return push_number(L, object_arg<RandomStream>(L, 1).normal()); }

/// An integer from 1 to `bound`.
int random_integer(lua_State* L) {
  auto& random = object_arg<RandomStream>(L, 1);
  const auto bound = integer_arg(L, 2, "bound", 1, int64_t{1} << 53);
  return push_number(L, static_cast<double>(random.below(static_cast<uint64_t>(bound)) + 1));
}

/// What compiled loops call through the FFI (lib/trinity/base/random.lua) in place of the methods:
/// the userdata's payload comes as a pointer. A closed stream gives NaN, a bound out of range too.
struct RandomFunctions {
  double (*uniform)(Handle<RandomStream>*) noexcept;
  double (*normal)(Handle<RandomStream>*) noexcept;
  double (*integer)(Handle<RandomStream>*, double) noexcept;
};

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr RandomFunctions kRandomFunctions = {
    [](Handle<RandomStream>* random) noexcept { return *random ? (*random)->uniform() : kNothing; },
    [](Handle<RandomStream>* random) noexcept { return *random ? (*random)->normal() : kNothing; },
    [](Handle<RandomStream>* random, double bound) noexcept {
      if (!*random || !(bound >= 1 && bound <= 0x1p53) || bound != std::floor(bound))
        return kNothing;
      return static_cast<double>((*random)->below(static_cast<uint64_t>(bound)) + 1);
    }};

constexpr luaL_Reg kRandom[] = {TRINITY_BIND("uniform", random_uniform),
                                TRINITY_BIND("normal", random_normal),
                                TRINITY_BIND("integer", random_integer)};

constexpr luaL_Reg kBaseFunctions[] = {TRINITY_BIND("clock_s", base_clock_s),
                                       TRINITY_BIND("read_file", base_read_file),
                                       TRINITY_BIND("read_compressed", base_read_compressed),
                                       TRINITY_BIND("exists", base_exists),
                                       TRINITY_BIND("printable", base_printable),
                                       TRINITY_BIND("write_file", base_write_file),
                                       TRINITY_BIND("append_file", base_append_file),
                                       TRINITY_BIND("check_output", base_check_output),
                                       TRINITY_BIND("know_structs", know_structs),
                                       TRINITY_BIND("list_folder", base_list_folder),
                                       TRINITY_BIND("suggestion", base_suggestion),
                                       TRINITY_BIND("format_bytes", base_format_bytes),
                                       TRINITY_BIND("threads", base_threads),
                                       TRINITY_BIND("set_threads", base_set_threads),
                                       TRINITY_BIND("begin_search", base_begin_search),
                                       TRINITY_BIND("end_search", base_end_search),
                                       TRINITY_BIND("begin_series", base_begin_series),
                                       TRINITY_BIND("end_series", base_end_series),
                                       TRINITY_BIND("keep_what_is_found", base_keep_what_is_found),
                                       TRINITY_BIND("keeps_what_is_found", base_keeps_what_is_found),
                                       TRINITY_BIND("begin_limit", base_begin_limit),
                                       TRINITY_BIND("end_limit", base_end_limit),
                                       TRINITY_BIND("stop_requested", base_stop_requested),
                                       TRINITY_BIND("begin_agreement", base_begin_agreement),
                                       TRINITY_BIND("end_agreement", base_end_agreement),
                                       TRINITY_BIND("noted_status", base_noted_status),
                                       TRINITY_BIND("accept_stop", base_accept_stop),
                                       TRINITY_BIND("open_objects", base_open_objects),
                                       TRINITY_BIND("position", base_position),
                                       TRINITY_BIND("random", base_random)};

}  // namespace

namespace {

/// What batches free is taken again at once. glibc maps blocks from 128 KiB on anew each time once
/// the first of these is set, and the kernel clears their pages: not below the most that it takes,
/// but where memory is limited, which these blocks would be kept from (host/process_limits.cpp).
void keep_freed_memory() {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
}

}  // namespace

ThreadPool& shared_pool() {
  if (!g_pool) {
    keep_freed_memory();
    g_pool = new ThreadPool(g_threads, set_up_thread);
  }
  return *g_pool;
}

void set_up_thread() {
  if (g_thread_setup) g_thread_setup();
}

void set_thread_setup(void (*setup)()) {
  g_thread_setup = setup;
  setup();
  if (g_pool) g_pool->on_each(setup);
}

void set_threads(int threads) {
  if (g_pool && threads != g_pool->threads())
    throw ArgumentError("the number of threads is fixed once work has begun");
  g_threads = threads;
}

void open_base(lua_State* L) {
  register_functions(L, kBaseFunctions);
  register_type<RandomStream>(L, kRandom);
  lua_pushlightuserdata(L, const_cast<RandomFunctions*>(&kRandomFunctions));
  lua_setfield(L, -2, "random_functions");
  luaL_getmetatable(L, kTypeName<RandomStream>);
  lua_getfield(L, -1, "__index");
  lua_setfield(L, -3, "random_methods");
  lua_pop(L, 1);
}

}  // namespace trinity::lua
