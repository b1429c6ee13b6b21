// How files are written: whole or not at all, whatever goes wrong (base/file.h).

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "support/damage.h"

using namespace trinity;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "trinity-write-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string at(const std::string& name) const { return (path_ / name).string(); }
  /// Names of all files, hidden ones too.
  size_t count() const {
    size_t files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path_)) ++files;
    return files;
  }

 private:
  fs::path path_;
};

/// While it lives, files of this process end at `bytes`: writing fails as it does on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("a file that cannot be written whole keeps its old content, and nothing is left next to it") {
  const Folder folder;
  const auto path = folder.at("file.json");
  const std::string large(100000, 'x');
  write_file(path, "before");
  {
    const FileSizeLimit limit(4096);
    CHECK(test::message_of<FileError>([&] { write_file(path, large); }) ==
          path + ": cannot write: File too large");
    CHECK(test::message_of<FileError>([&] { append_file(path, large); }) ==
          path + ": cannot write: File too large");
    CHECK(test::message_of<FileError>([&] { make_folder(folder.at("run"), {{"run.json", large}}); }) ==
          folder.at("run") + ": cannot make the folder: File too large");
  }
  CHECK(read_file(path) == "before");
  CHECK(folder.count() == 1);
  CHECK(test::message_of<FileError>([&] { write_file("/dev/full", "x"); }) ==
        "/dev/full: cannot write: No space left on device");
}

TEST_CASE("a file that is replaced keeps its permissions, a link stays, a pipe is written to") {
  const Folder folder;
  const auto path = folder.at("file"), link = folder.at("link"), pipe = folder.at("pipe");
  write_file(path, "one");
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  fs::create_symlink("file", link);
  write_file(link, "two", Durability::unsynced);
  CHECK(fs::is_symlink(link));
  CHECK(read_file(path) == "two");
  CHECK((fs::status(path).permissions() & fs::perms::mask) == fs::perms(0640));
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream file(pipe);
    std::getline(file, got);
  });
  write_file(pipe, "three\n");
  reader.join();
  CHECK(got == "three");
  CHECK(fs::is_fifo(pipe));
  CHECK(folder.count() == 3);
}

TEST_CASE("threads that write one file leave one of theirs, whole") {
  const Folder folder;
  const auto path = folder.at("file");
  std::vector<std::thread> threads;
  for (char letter : {'a', 'b', 'c', 'd'})
    threads.emplace_back([&path, letter] {
      for (int i = 0; i < 50; ++i)
        write_file(path, std::string(20000, letter), Durability::unsynced);
    });
  for (auto& thread : threads) thread.join();
  const auto content = read_file(path);
  REQUIRE(content.size() == 20000);
  CHECK(content.find_first_not_of(content[0]) == std::string::npos);
  CHECK(folder.count() == 1);
}

TEST_CASE("a folder has its first file from its first moment, and one of several makers makes it") {
  const Folder folder;
  const auto path = folder.at("runs/one");
  CHECK(make_folder(path, {{"run.json", "{}"}, {"script.lua", "x"}}));
  CHECK(read_file(path + "/run.json") == "{}");
  CHECK(read_file(path + "/script.lua") == "x");
  CHECK_FALSE(make_folder(path, {{"run.json", "other"}}));
  CHECK(read_file(path + "/run.json") == "{}");
  write_file(folder.at("runs/file"), "x");
  CHECK_FALSE(make_folder(folder.at("runs/file"), {{"run.json", "{}"}}));
  fs::create_directory(folder.at("runs/empty"));  // whose maker was killed
  CHECK(make_folder(folder.at("runs/empty"), {{"run.json", "{}"}}));
  write_file(path + "/.file.1-1.part", "left by a killed writer");
  write_file(path + "/below/.file.json.77-2.part", "");
  write_file(path + "/.hidden", "");
  remove_leftovers(path);
  CHECK_FALSE(fs::exists(path + "/.file.1-1.part"));
  CHECK_FALSE(fs::exists(path + "/below/.file.json.77-2.part"));
  CHECK(fs::exists(path + "/.hidden"));
}

TEST_CASE("a name of any length that the system takes can be written") {
  const Folder folder;
  const auto path = folder.at(std::string(255, 'n'));
  write_file(path, "x");
  CHECK(read_file(path) == "x");
}
