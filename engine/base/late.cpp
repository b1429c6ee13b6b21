#include "base/late.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/process.h"

namespace trinity {
namespace {

std::mutex g_mutex;
std::map<std::string, void*> g_open;
LateHooks g_hooks;

/// The folder of the library or program that holds this function.
std::filesystem::path own_folder() {
  Dl_info own;
  std::error_code error;
  if (dladdr(reinterpret_cast<void*>(&own_folder), &own) == 0) return {};
  const auto file = std::filesystem::canonical(own.dli_fname, error);
  return error ? std::filesystem::path() : file.parent_path();
}

/// Refuses to open a part for which the process has too little address space.
void check_room(const LatePart& part) {
  rlimit limit{};
  if (part.address_bytes == 0 || getrlimit(RLIMIT_AS, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return;
  const auto pages = std::strtoull(system_text("/proc/self/statm").c_str(), nullptr, 10);
  const size_t used = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t cores = std::max(2U, std::thread::hardware_concurrency());
  const size_t wanted = part.address_bytes + (cores - 2) * part.address_bytes_of_core;
  const size_t left = limit.rlim_cur - std::min<size_t>(used, limit.rlim_cur);
  if (left >= wanted) return;
  constexpr size_t kMebibyte = size_t{1} << 20;
  throw LimitError(fmt::format("opening {} takes {} MiB of address space, and the limit of this "
                               "process (ulimit -v) leaves {} MiB",
                               part.needs, wanted / kMebibyte, left / kMebibyte));
}

void* open_part(const LatePart& part) {
  check_room(part);
  const auto path = own_folder() / part.file;
  if (g_hooks.before) g_hooks.before();
  // Global, because LibTorch looks for functions of its BLAS by name.
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  const std::string why = handle ? "" : dlerror();
  if (g_hooks.after) g_hooks.after();
  if (!handle)
    throw Error(
        fmt::format("this needs {}, which trinity was built without or which is missing "
                    "here: install it and run scripts/bootstrap run again ({})",
                    part.needs, why));
  return handle;
}

}  // namespace

bool is_built(const LatePart& part) {
  std::error_code error;
  return std::filesystem::exists(own_folder() / part.file, error);
}

bool is_open(const LatePart& part) {
  const std::lock_guard lock(g_mutex);
  return g_open.contains(part.file);
}

void* late_symbol(const LatePart& part, const char* symbol) {
  const std::lock_guard lock(g_mutex);
  auto found = g_open.find(part.file);
  if (found == g_open.end()) found = g_open.emplace(part.file, open_part(part)).first;
  void* address = dlsym(found->second, symbol);
  if (!address) throw Error(fmt::format("{} is of another build of trinity", part.file));
  return address;
}

void set_late_hooks(const LateHooks& hooks) { g_hooks = hooks; }

}  // namespace trinity
