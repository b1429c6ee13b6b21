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

#include "base/error.h"
#include "base/process.h"

namespace trinity {
namespace {

std::mutex g_mutex;
std::map<std::string, void*> g_open;
LateHooks g_hooks;

/// The folder of the library or program that contains this function.
std::filesystem::path own_folder() {
  Dl_info own;
  std::error_code error;
  if (dladdr(reinterpret_cast<void*>(&own_folder), &own) == 0) return {};
  const auto file = std::filesystem::canonical(own.dli_fname, error);
  return error ? std::filesystem::path() : file.parent_path();
}

/// Number of OpenBLAS threads: one per core of the machine, regardless of affinity, up to 128 in
/// Debian's build.
size_t blas_threads() {
  const size_t cores = std::clamp(sysconf(_SC_NPROCESSORS_CONF), 1L, 128L);
  for (const char* name : {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* said = std::getenv(name);
    const long count = said ? std::strtol(said, nullptr, 10) : 0;
    if (count > 0) return std::min<size_t>(cores, static_cast<size_t>(count));
  }
  return cores;
}

/// 0 for parts that were not measured.
size_t wanted(const LatePart& part, size_t bytes) {
  return bytes == 0 ? 0 : bytes + blas_threads() * part.bytes_of_core;
}

/// Description of a limit that is too low for `wanted` bytes in addition to those in use; or empty.
std::string lack(const LatePart& part, int kind, size_t wanted) {
  rlimit limit{};
  if (getrlimit(kind, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const bool space = kind == RLIMIT_AS;
  const size_t left = mappable_bytes(wanted, !space);
  if (left >= wanted) return {};
  constexpr size_t kMebibyte = size_t{1} << 20;
  return fmt::format("opening {} takes {} MiB of {}, and the limit of this process ({}) leaves {} "
                     "MiB",
                     part.needs, wanted / kMebibyte, space ? "address space" : "private memory",
                     space ? "ulimit -v" : "ulimit -d", left / kMebibyte);
}

/// Why the process's limits are too low for a part; or empty.
std::string refusal(const LatePart& part) {
  const auto why = lack(part, RLIMIT_AS, wanted(part, part.address_bytes));
  return why.empty() ? lack(part, RLIMIT_DATA, opening_bytes(part)) : why;
}

void* open_part(const LatePart& part) {
  const auto path = own_folder() / part.file;
  const size_t bytes = opening_bytes(part);
  if (g_hooks.before) g_hooks.before(bytes);
  const auto refused = refusal(part);
  // RTLD_GLOBAL, because LibTorch looks up functions of its BLAS by name.
  void* handle = refused.empty() ? dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL) : nullptr;
  const std::string why = handle || !refused.empty() ? "" : dlerror();
  if (g_hooks.after) g_hooks.after(bytes);
  if (!refused.empty()) throw LimitError(refused);
  if (!handle)
    throw Error("this needs {}, which trinity was built without or which is missing here: install it and run "
                "scripts/bootstrap run again ({})", part.needs, why);
  return handle;
}

}  // namespace

size_t opening_bytes(const LatePart& part) { return wanted(part, part.private_bytes); }

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
  if (!address) throw Error("{} belongs to another build of trinity", part.file);
  return address;
}

void set_late_hooks(const LateHooks& hooks) { g_hooks = hooks; }

}  // namespace trinity
