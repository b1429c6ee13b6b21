#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/hold.h"

namespace trinity {
namespace {

namespace fs = std::filesystem;

/// Removes a file or a folder with all in it. 0 or the error's number.
int remove_at(int folder, const std::string& name);

/// The names in an open folder, `.` and `..` left out. 0 or the error's number.
int read_names(const Descriptor& folder, std::vector<std::string>& names) {
  const int copy = fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
  DIR* entries = copy < 0 ? nullptr : fdopendir(copy);
  if (!entries) {
    const int code = errno;
    if (copy >= 0) close(copy);
    return code;
  }
  while (const dirent* entry = readdir(entries)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(entries);
  return 0;
}

/// A folder's entry, itself a folder and no link, opened to list it.
Descriptor open_listed(int folder, const std::string& name) {
  return Descriptor(call::open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
}

int remove_at(int folder, const std::string& name) {
  if (call::remove(folder, name) == 0) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  std::vector<std::string> names;
  {
    const auto inner = open_listed(folder, name);
    if (!inner) return errno;
    if (const int code = read_names(inner, names); code != 0) return code;
    for (const auto& one : names)
      if (const int code = remove_at(inner.get(), one); code != 0 && code != ENOENT) return code;
  }
  return call::remove(folder, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

/// 0 or the error's number.
int write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const auto written = call::write(file, content.data(), content.size());
    if (written < 0) return errno;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

/// 0 or the error's number. Some file systems have no fsync: EINVAL.
int sync_file(int file) { return call::sync(file) == 0 || errno == EINVAL ? 0 : errno; }

/// A name that list_folder() and safe scripts do not see, and that nobody guesses.
std::string hidden_name(const std::string& name) {
  constexpr size_t kMostOfName = 200;  // names end at 255 bytes
  uint64_t random = 0;
  while (getrandom(&random, sizeof random, 0) != sizeof random) continue;
  return fmt::format(".{}.{:016x}.part", name.substr(0, kMostOfName), random);
}

/// What is made beside a file under a hidden name; what did not take the file's place goes.
class Beside {
 public:
  explicit Beside(const Place& place) : place_(place), name_(hidden_name(place.name)) {}
  ~Beside() {
    if (made_) remove_at(place_.at, name_);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  /// Each gives 0 or the error's number.
  int make_file(std::string_view content, Durability durability, mode_t mode);
  int make_folder(const NewFiles& files);
  int take_place(unsigned flags = 0);
  Descriptor lock;  ///< of a folder that was made

 private:
  const Place& place_;
  const std::string name_;
  bool made_ = false;
};

/// Makes a file that nobody has. `mode` 0: as the umask says. 0 or the error's number.
int make_at(int folder, const std::string& name, std::string_view content, Durability durability,
            mode_t mode, bool& made) {
  Descriptor file(call::open(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
  if (!file) return errno;
  made = true;
  if (const int code = write_all(file.get(), content); code != 0) return code;
  if (mode != 0 && fchmod(file.get(), mode) != 0) return errno;
  if (durability == Durability::synced)
    if (const int code = sync_file(file.get()); code != 0) return code;
  return file.finish();
}

int Beside::make_file(std::string_view content, Durability durability, mode_t mode) {
  return make_at(place_.at, name_, content, durability, mode, made_);
}

int Beside::make_folder(const NewFiles& files) {
  if (call::make_folder(place_.at, name_) != 0) return errno;
  made_ = true;
  const auto folder = open_listed(place_.at, name_);
  if (!folder) return errno;
  for (const auto& [name, content] : files) {
    bool made = false;
    if (const int code = make_at(folder.get(), name, content, Durability::synced, 0, made))
      return code;
  }
  lock = lock_new_folder(folder.get());
  return sync_file(folder.get());
}

int Beside::take_place(unsigned flags) {
  int got = call::rename(place_.at, name_, place_.name, flags);
  if (got != 0 && flags != 0 && errno == EINVAL)  // a file system without such flags
    got = call::rename(place_.at, name_, place_.name);
  if (got != 0) return errno;
  made_ = false;
  return 0;
}

/// Makes a rename last. 0 or the error's number.
int sync_folder(const Place& place) {
  const Descriptor folder(call::open(place.at, ".", O_RDONLY | O_DIRECTORY));
  // A folder that may be written but not read cannot be synced.
  if (!folder) return errno == EACCES ? 0 : errno;
  return sync_file(folder.get());
}

/// A file that is to be written: where it lies, links followed, and what is there now.
struct Target {
  Place place;
  std::optional<struct stat> there;
  bool is_regular() const { return !there || S_ISREG(there->st_mode); }
};

Target find_target(const std::string& path, Purpose purpose) {
  Target target{find_place(path, purpose, true), {}};
  struct stat about;
  if (fstatat(target.place.at, target.place.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0)
    return target;
  if (S_ISLNK(about.st_mode)) {  // of restricted threads none is: their names have no links left
    std::error_code error;
    const auto place = fs::canonical(path, error);
    if (error) return target;  // it leads nowhere, and is replaced
    target.place = find_place(place.string(), purpose);
    if (fstatat(target.place.at, target.place.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0)
      return target;
  }
  target.there = about;
  return target;
}

void write_to_device(const std::string& path, const Place& place, std::string_view content) {
  Descriptor file(call::open(place.at, place.name, O_WRONLY | O_NOFOLLOW));
  int code = file ? write_all(file.get(), content) : errno;
  if (code == 0) code = file.finish();
  if (code != 0) fail_file(path, "cannot write", code);
}

/// Collects the leftovers of killed writers below an open folder and removes them.
int clear(const Descriptor& folder) {
  std::vector<std::string> names;
  if (const int code = read_names(folder, names); code != 0) return code;
  for (const auto& name : names) {
    if (name.starts_with('.') && name.ends_with(".part")) {
      if (const int code = remove_at(folder.get(), name); code != 0 && code != ENOENT) return code;
    } else if (const auto inner = open_listed(folder.get(), name)) {
      if (const int code = clear(inner); code != 0) return code;
    }
  }
  return 0;
}

}  // namespace

std::string read_file(const std::string& path) {
  const auto file = open_to_read(path);
  std::string content;
  char buffer[1 << 16];
  ssize_t got;
  while ((got = call::read(file.get(), buffer, sizeof buffer)) > 0)
    content.append(buffer, static_cast<size_t>(got));
  if (got < 0) fail_file(path, "cannot read", errno);
  return content;
}

bool is_readable(const std::string& path) {
  try {
    const auto place = find_place(path, Purpose::read);
    const int links = place.at == AT_FDCWD ? 0 : O_NOFOLLOW;
    constexpr int kNoWait = O_NONBLOCK | O_NOCTTY;
    return static_cast<bool>(
        Descriptor(call::open(place.at, place.name, O_RDONLY | kNoWait | links)));
  } catch (const ForbiddenFile&) {
    throw;
  } catch (const FileError&) {  // no folder
    return false;
  }
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  const auto place = find_place(path, Purpose::read);
  const Descriptor folder(call::open(place.at, place.name.empty() ? "." : place.name,
                                     O_RDONLY | O_DIRECTORY));
  int code = folder ? read_names(folder, names) : errno;
  if (code == ENOENT || code == ENOTDIR || code == EACCES) code = 0;
  if (code != 0) fail_file(path, "cannot list", code);
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  std::sort(names.begin(), names.end());
  return names;
}

void write_file(const std::string& path, std::string_view content, Durability durability,
                Purpose purpose) {
  const auto target = find_target(path, purpose);
  if (!target.is_regular()) return write_to_device(path, target.place, content);
  Beside beside(target.place);
  const mode_t mode = target.there ? target.there->st_mode & 07777 : 0;
  int code = beside.make_file(content, durability, mode);
  if (code == 0) code = beside.take_place();
  if (code == 0 && durability == Durability::synced) code = sync_folder(target.place);
  if (code != 0) fail_file(path, "cannot write", code);
}

void check_output(const std::string& path) {
  const auto target = find_target(path, Purpose::write);
  int code = 0;
  if (!target.is_regular()) {  // a device or pipe
    if (S_ISDIR(target.there->st_mode))
      code = EISDIR;
    else if (faccessat(target.place.at, target.place.name.c_str(), W_OK, 0) != 0)
      code = errno;
  } else {
    code = Beside(target.place).make_file("", Durability::unsynced, 0);
  }
  if (code != 0) fail_file(path, "cannot write", code);
}

void append_file(const std::string& path, std::string_view content, Durability durability) {
  const auto place = find_place(path, Purpose::write);
  const Descriptor file(
      call::open(place.at, place.name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0666));
  if (!file) fail_file(path, "cannot write", errno);
  const off_t before = lseek(file.get(), 0, SEEK_END);
  int code = write_all(file.get(), content);
  if (code == 0 && durability == Durability::synced) code = sync_file(file.get());
  if (code != 0) {
    // No torn record stays where the disk was full; where this fails, readers leave it out.
    if (before >= 0) static_cast<void>(!ftruncate(file.get(), before));
    fail_file(path, "cannot write", code);
  }
}

bool make_folder(const std::string& path, const NewFiles& files) {
  const auto name = path.substr(0, path.find_last_not_of('/') + 1);
  const auto place = find_place(name, Purpose::record, true);
  Beside beside(place);
  if (const int code = beside.make_folder(files); code != 0)
    fail_file(path, "cannot make the folder", code);
  // Nobody's run lies in an empty folder: its maker was killed.
  static_cast<void>(call::remove(place.at, place.name, AT_REMOVEDIR));
  const int code = beside.take_place(RENAME_NOREPLACE);
  if (code == EEXIST || code == ENOTEMPTY || code == ENOTDIR) return false;
  if (code != 0) fail_file(path, "cannot make the folder", code);
  keep_lock(std::move(beside.lock));
  own_folder(path);
  sync_folder(place);
  return true;
}

void remove_leftovers(const std::string& path) {
  const auto place = find_place(path, Purpose::record);
  const auto folder = open_listed(place.at, place.name);
  const int code = folder ? clear(folder) : errno;
  if (code != 0) fail_file(path, "cannot clear", code);
}

void remove_tree(const std::string& path) {
  const auto place = find_place(path, Purpose::record);
  const int code = remove_at(place.at, place.name);
  if (code != 0) fail_file(path, "cannot remove", code);
}

}  // namespace trinity
