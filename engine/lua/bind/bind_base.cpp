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

using Path = Text<"path">;

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the content of a gzip file, at most 1 GB.
std::string read_compressed(Path path) { return decompressed(path, read_file(path), size_t{1} << 30); }

Durability durability(const Optional<Text<"durability">>& given, int index, Durability otherwise) {
  if (!given) return otherwise;
  if (*given != "synced" && *given != "unsynced")
    throw WrongArgument(index, "durability", "expected 'synced' or 'unsynced', got '" + *given + "'");
  return *given == "synced" ? Durability::synced : Durability::unsynced;
}

/// write_file(path, content[, 'unsynced']), append_file(path, content[, 'synced'])
template <auto write, Durability otherwise>
void base_write(Path path, Text<"content"> content, Optional<Text<"durability">> given) {
  write(path, content, durability(given, 3, otherwise));
}

/// renamed(name) -> the name that replaced a name of an earlier version, or ""
auto base_renamed(Text<"name"> name) { return std::string(renamed(name)); }

auto base_suggestion(lua_State* L, Text<"name"> name, Table<"candidates"> list) {
  std::vector<std::string> candidates;
  for_each(L, list, [&](int) { candidates.push_back(string_arg(L, -1, "candidate")); });
  return suggestion(name, candidates);
}

auto base_format_bytes(Number<"bytes"> bytes) {
  if (!(std::abs(bytes) < 9e18))
    throw WrongArgument(1, "bytes", "expected a number of bytes, got {}", bytes.value);
  return format_bytes(static_cast<int64_t>(bytes));
}

auto base_random(Integer<"seed", 0, int64_t{1} << 53> seed, Text<"name"> name,
                 Optional<Integer<"index", 0, int64_t{1} << 53>> index) {
  return std::make_shared<RandomStream>(static_cast<uint64_t>(seed), name, index ? static_cast<uint64_t>(*index) : 0);
}

/// An integer from 1 to `bound`.
uint64_t random_integer(RandomStream& random, Integer<"bound", 1, int64_t{1} << 53> bound) {
  return random.below(static_cast<uint64_t>(bound)) + 1;
}

/// Functions that compiled loops call through the FFI (lib/trinity/base/random.lua) in place of the
/// methods, with a pointer to the userdata's payload. A closed stream and a bound out of range give
/// NaN.
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

constexpr luaL_Reg kRandom[] = {
    TRINITY_BIND("uniform", &RandomStream::uniform), TRINITY_BIND("normal", &RandomStream::normal),
    TRINITY_BIND("integer", random_integer)};

constexpr luaL_Reg kBaseFunctions[] = {
    TRINITY_BIND("clock_s", clock_s),
    TRINITY_BIND("read_file", [](Path path) { return read_file(path); }),
    TRINITY_BIND("read_compressed", read_compressed),
    TRINITY_BIND("exists", [](Path path) { return is_readable(path); }),
    TRINITY_BIND("printable", [](Text<"text"> text) { return printable(text); }),
    TRINITY_BIND("write_file", base_write<[](const auto&... given) { write_file(given...); }, Durability::synced>),
    TRINITY_BIND("append_file", base_write<[](const auto&... given) { append_file(given...); }, Durability::unsynced>),
    TRINITY_BIND("check_output", [](Path path) { check_output(path); }),
    TRINITY_BIND("know_structs", know_structs),
    TRINITY_BIND("list_folder", [](Path path) { return list_folder(path); }),
    TRINITY_BIND("suggestion", base_suggestion),
    TRINITY_BIND("renamed", base_renamed),
    TRINITY_BIND("format_bytes", base_format_bytes),
    TRINITY_BIND("threads", [] { return shared_pool().threads(); }),
    // Stopping of searches: lua/host/interrupt.h.
    TRINITY_BIND("begin_search", begin_search),
    TRINITY_BIND("end_search", end_search),
    TRINITY_BIND("begin_series", begin_series),
    TRINITY_BIND("end_series", end_series),
    TRINITY_BIND("keep_what_is_found", keep_what_is_found),
    TRINITY_BIND("keeps_what_is_found", keeps_what_is_found),
    TRINITY_BIND("begin_limit", [](Number<"seconds"> seconds) { begin_limit(seconds); }),
    TRINITY_BIND("end_limit", end_limit),
    TRINITY_BIND("stop_requested", stop_requested),
    TRINITY_BIND("begin_agreement", begin_agreement),
    TRINITY_BIND("end_agreement", end_agreement),
    TRINITY_BIND("noted_status", noted_status),
    TRINITY_BIND("accept_stop", [](Integer<"status", kInterruptedStatus, kEndedStatus> status) {
      accept_stop(static_cast<int>(status));
    }),
    // Number of engine objects that scripts hold, neither closed nor collected: for tests of leaks.
    TRINITY_BIND("open_objects", [] { return open_objects.load(); }),
    // The position "file:line: " that an error raised now should carry.
    TRINITY_BIND("position", [](lua_State* L) { return push_position(L), 1; }),
    TRINITY_BIND("random", base_random)};

}  // namespace

namespace {

/// Memory that batches free is taken again at once. glibc maps blocks from 128 KiB on again each
/// time once the first of these is set, and the kernel clears their pages: not below the most that
/// it takes, but where memory is limited, which these blocks would be kept from
/// (host/process_limits.cpp).
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

void set_up_thread() { if (g_thread_setup) g_thread_setup(); }

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
