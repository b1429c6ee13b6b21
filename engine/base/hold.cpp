#include "base/hold.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "base/hash.h"
#include "base/process.h"

namespace trinity {
namespace {

constexpr const char* kName = ".lock";
constexpr unsigned kTouch_s = 5;
constexpr time_t kFresh_s = 30;

// Descriptor of the lock, -1: none. Another thread touches its file.
std::atomic<int> g_lock{-1};
bool g_touches = false;

Descriptor open_lock(int folder) {
  return Descriptor(call::open(folder, kName, O_RDWR | O_CREAT | O_NOFOLLOW, 0666));
}

struct flock whole_file() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

void* touch_on(void*) {
  for (;;) {
    sleep(kTouch_s);
    static_cast<void>(futimens(g_lock, nullptr));
  }
}

/// Starts a thread with a small stack and all signals blocked.
void begin_to_touch() {
  if (std::exchange(g_touches, true)) return;
  pthread_attr_t about;
  pthread_attr_init(&about);
  pthread_attr_setstacksize(&about, size_t{1} << 16);
  pthread_attr_setdetachstate(&about, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, &about, touch_on, nullptr) != 0) g_touches = false;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&about);
}

}  // namespace

int lock_file(int file, bool exclusive) {
  auto lock = whole_file();
  lock.l_type = exclusive ? F_WRLCK : F_RDLCK;
  return fcntl(file, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

Descriptor lock_new_folder(int folder) {
  auto file = open_lock(folder);
  if (file && lock_file(file.get(), true) == EAGAIN) return Descriptor();
  return file;
}

void keep_lock(Descriptor lock) {
  if (!lock) return;
  // Replaces the previous lock under the same descriptor number, which thus never belongs to
  // another file.
  if (g_lock < 0 || dup3(lock.get(), g_lock, O_CLOEXEC) < 0) g_lock = lock.release();
  begin_to_touch();
}

bool hold_folder(const std::string& path) {
  const Descriptor folder(call::open(AT_FDCWD, path, O_PATH | O_DIRECTORY));
  if (!folder) fail_file(path, "cannot hold the folder", errno);
  auto file = open_lock(folder.get());
  if (!file) fail_file(path, "cannot hold the folder", errno);
  const int code = lock_file(file.get(), true);
  if (code == EAGAIN || code == EACCES) return false;
  static_cast<void>(futimens(file.get(), nullptr));
  keep_lock(std::move(file));
  return true;
}

std::optional<bool> is_held(const std::string& path, bool same_system) {
  const Descriptor file(
      call::open(AT_FDCWD, path + "/" + kName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat about;
  if (!file || fstat(file.get(), &about) != 0) return std::nullopt;
  auto lock = whole_file();
  const bool knows = fcntl(file.get(), F_OFD_GETLK, &lock) == 0;
  if (knows && lock.l_type != F_UNLCK) return true;
  if (knows && same_system) return false;
  return std::time(nullptr) - about.st_mtime < kFresh_s;
}

void leave_lock_to_parent() { const Descriptor left(g_lock.exchange(-1)); }

std::string system_id() {
  static const auto text = system_text("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

uint32_t system_tag() {
  static const auto tag = static_cast<uint32_t>(mix64(Hasher().add(system_id()).value()));
  return tag;
}

}  // namespace trinity
