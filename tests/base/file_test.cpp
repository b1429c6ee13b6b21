// Whole files (base/file.h): links that are planted, calls that fail, writers that are killed, and
// folders that processes hold.

#include "base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>

#include "base/hold.h"
#include "support/damage.h"

using namespace trinity;
namespace fs = std::filesystem;

namespace {

/// A folder with work/ (the working directory while it lives), work/inner/file.txt and
/// outside/file.txt.
class Yard {
 public:
  Yard() {
    auto name = (fs::temp_directory_path() / "trinity-files-XXXXXX").string();
    root_ = fs::canonical(mkdtemp(name.data()));
    write_file(at("work/inner/file.txt"), "inside");
    write_file(at("outside/file.txt"), "outside");
    fs::current_path(root_ / "work");
  }
  ~Yard() {
    fs::current_path(before_);
    fs::remove_all(root_);
  }
  std::string at(const char* path) const { return (root_ / path).string(); }
  size_t outside() const {
    size_t files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root_ / "outside")) ++files;
    return files;
  }

 private:
  fs::path before_ = fs::current_path();
  fs::path root_;
};

}  // namespace

TEST_CASE("a planted link is never written through") {
  const Yard yard;
  const auto target = yard.at("outside/planted.txt");
  // The names that were once guessed: of this process, the next few.
  for (int count = 0; count < 200; ++count)
    fs::create_symlink(target,
                       yard.at("work/") + fmt::format(".a.json.{}-{}.part", getpid(), count));
  write_file("a.json", "{}");
  fs::create_symlink(target, "dangling.txt");
  CHECK(test::message_of<FileError>([] { append_file("dangling.txt", "x"); }) ==
        "dangling.txt: cannot write: Too many levels of symbolic links");
  write_file("dangling.txt", "mine");  // takes the link's place
  CHECK(yard.outside() == 1);
}

TEST_CASE("a new folder keeps the text of its seal, if that fits into a link") {
  const Yard yard;
  CHECK(make_folder("runs/one", {{"run.json", "{}"}}, "{\"script\": \"a b\"}", Hold::no));
  CHECK(read_seal("runs/one") == "{\"script\": \"a b\"}");
  CHECK_FALSE(make_folder("runs/one", {}, "other", Hold::no));
  CHECK(make_folder("runs/two", {{"run.json", "{}"}}, std::string(5000, 'x'), Hold::no));
  CHECK(read_seal("runs/two") == "");
  CHECK(read_seal("runs/none") == "");
  CHECK(list_folder("runs/one") == std::vector<std::string>{"run.json"});
  remove_tree("runs/one");
  CHECK_FALSE(fs::exists("runs/one"));
}

TEST_CASE("the folder of a run is held by one process until that ends") {
  const Yard yard;
  CHECK_FALSE(is_held("inner", true).has_value());
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t other = fork();
  if (other == 0) {
    const bool held = hold_folder("inner");
    [[maybe_unused]] const auto told = write(ready[1], held ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char held = 0;
  REQUIRE(read(ready[0], &held, 1) == 1);
  CHECK(held == 'y');
  CHECK(is_held("inner", true) == true);
  CHECK(is_held("inner", false) == true);
  CHECK_FALSE(hold_folder("inner"));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  CHECK(is_held("inner", true) == false);
  CHECK(is_held("inner", false) == true);  // of another system: it was touched a moment ago
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  utimensat(AT_FDCWD, "inner/.lock", old, 0);
  CHECK(is_held("inner", false) == false);
  CHECK(hold_folder("inner"));
  leave_lock_to_parent();
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("every call that fails is an error, and what was there stays whole") {
  const Yard yard;
  int64_t points = 0;
  const auto each = [&](const std::function<void()>& body, const std::function<void()>& check) {
    for (const int code : {EIO, ENOSPC, EMFILE, EACCES}) {
      fail_call(0);
      body();
      const auto calls = fail_call(0);
      REQUIRE(calls > 0);
      for (int64_t nth = 1; nth <= calls; ++nth, ++points) {
        fail_call(nth, code);
        try {
          body();
        } catch (const FileError&) {
        }
        fail_call(0);
        CAPTURE(nth);
        check();
      }
    }
  };
  const auto no_part = [](const char* folder) {
    for (const auto& entry : fs::directory_iterator(folder))
      CHECK(entry.path().extension() != ".part");
  };
  each([] { read_file("inner/file.txt"); }, [] { CHECK(read_file("inner/file.txt") == "inside"); });
  bool odd = false;
  each([&] { write_file("inner/file.txt", (odd = !odd) ? "inside" : "beside"); },
       [&] {
         const auto text = read_file("inner/file.txt");
         CHECK((text == "inside" || text == "beside"));
         no_part("inner");
       });
  write_file("inner/log.txt", "");
  each([] { append_file("inner/log.txt", "line\n", Durability::synced); },
       [] { CHECK(read_file("inner/log.txt").size() % 5 == 0); });
  each(
      [] {
        fs::remove_all("runs");
        make_folder("runs/one", {{"run.json", "{}"}, {"script.lua", "x"}});
      },
      [&] {
        if (!fs::exists("runs/one")) return;
        CHECK(read_file("runs/one/run.json") == "{}");
        CHECK(read_file("runs/one/script.lua") == "x");
      });
  // Files that cannot be removed stay, until somebody clears the folder.
  each([] { check_output("inner/new.txt"); },
       [&] {
         CHECK(!fs::exists("inner/new.txt"));
         remove_leftovers("inner");
         no_part("inner");
       });
  each([] { list_folder("inner"); }, [] { CHECK(list_folder("inner").size() >= 1); });
  MESSAGE(points << " failed calls");
  CHECK(points > 100);
}

namespace {

/// The hidden files and folders in a folder.
std::vector<std::string> hidden(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with('.'))
      names.push_back(entry.path().filename().string());
  return names;
}

/// Starts a process that does `work`, waits until `folder` has something hidden, and kills it.
void kill_at_work(const std::string& folder, const std::function<void()>& work) {
  const pid_t writer = fork();
  if (writer == 0) {
    for (;;) work();
  }
  for (bool seen = false; !seen;) {
    seen = !hidden(folder).empty();
    if (seen) kill(writer, SIGSTOP);  // it may have gone on meanwhile
    if (seen && (usleep(1000), hidden(folder).empty())) {
      kill(writer, SIGCONT);
      seen = false;
    }
  }
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
  REQUIRE(hidden(folder).size() == 1);
}

}  // namespace

TEST_CASE("what a killed writer left goes with the next file that is written there") {
  const Yard yard;
  const std::string large(size_t{32} << 20, 'x');
  const auto left = [&] {
    kill_at_work("inner", [&] { write_file("inner/large.txt", large, Durability::unsynced); });
    return "inner/" + hidden("inner").at(0);
  };
  left();
  write_file("inner/other.txt", "x", Durability::unsynced);
  CHECK(hidden("inner").size() == 1);
  write_file("inner/other.txt", "x");
  CHECK(hidden("inner").empty());
  left();
  check_output("inner/other.txt");
  CHECK(hidden("inner").empty());

  SUBCASE("but not what somebody else calls so, nor a link, nor what another system wrote today") {
    auto name = left();
    const auto at = name.find("-") - 8;
    name.replace(at, 8, name.substr(at, 8) == "01234567" ? "76543210" : "01234567");
    fs::rename("inner/" + hidden("inner").at(0), name);
    const auto tag = fmt::format("{:08x}", system_tag());
    for (const auto& mine :
         {".mine.part", ".a.01234567-0123456789abcdeg.part", ".part", ".0123456789abcdef.part"})
      write_file(fmt::format("inner/{}", mine), "mine");
    fs::create_symlink(yard.at("outside/file.txt"),
                       fmt::format("inner/.a.{}-0123456789abcdef.part", tag));
    const auto before = hidden("inner").size();
    write_file("inner/other.txt", "x");
    CHECK(hidden("inner").size() == before);
    const timespec old[2] = {{1000, 0}, {1000, 0}};
    utimensat(AT_FDCWD, name.c_str(), old, 0);
    write_file("inner/other.txt", "x");
    CHECK(hidden("inner").size() == before - 1);
    CHECK_FALSE(fs::exists(name));
  }
  SUBCASE("and a folder of a run that was not there yet") {
    fs::create_directory("runs");
    kill_at_work("runs", [] {
      make_folder("runs/one", {{"run.json", std::string(size_t{8} << 20, 'x')}});
      remove_tree("runs/one");
    });
    const auto name = "runs/" + hidden("runs").at(0);
    make_folder("runs/two", {});
    CHECK(fs::exists(name));  // it may be of this moment
    const timespec old[2] = {{1000, 0}, {1000, 0}};
    utimensat(AT_FDCWD, name.c_str(), old, 0);
    leave_lock_to_parent();
    make_folder("runs/three", {});
    leave_lock_to_parent();
    CHECK(hidden("runs").empty());
  }
}

TEST_CASE("processes that write in one folder leave each other's files alone") {
  const Yard yard;
  constexpr int kWriters = 6, kTimes = 200;
  std::vector<pid_t> writers;
  for (int i = 0; i < kWriters; ++i) {
    const pid_t writer = fork();
    if (writer == 0) {
      int wrong = 0;
      for (int k = 0; k < kTimes; ++k) {
        try {
          write_file(fmt::format("inner/{}.txt", k % 3 == 0 ? 0 : i), std::string(5000, 'x'));
        } catch (const std::exception&) {
          ++wrong;
        }
      }
      _exit(wrong == 0 ? 0 : 1);
    }
    writers.push_back(writer);
  }
  for (const auto writer : writers) {
    int status = 1;
    waitpid(writer, &status, 0);
    CHECK(status == 0);
  }
  CHECK(hidden("inner").empty());
}

TEST_CASE("signals that break into calls cost no file") {
  const Yard yard;
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, &before);  // without SA_RESTART
  for (int nth = 1; nth <= 7; ++nth) {
    fail_call(nth, EINTR);
    CHECK_NOTHROW(write_file("inner/file.txt", "x"));
  }
  fail_call(0);
  sigaction(SIGUSR1, &before, nullptr);
}
