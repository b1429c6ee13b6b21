#include "base/file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "base/error.h"
#include "support/in_thread.h"

namespace {

namespace fs = std::filesystem;
using trinity::FileError;
using trinity::test::in_thread;

/// A folder with work/, library/, outside.txt and a link from work/ to what is above; the working
/// directory is work/ while it lives.
class Folders {
 public:
  Folders() {
    auto name = (fs::temp_directory_path() / "trinity-file-XXXXXX").string();
    root_ = fs::canonical(mkdtemp(name.data()));
    fs::create_directories(root_ / "work/sub");
    fs::create_directories(root_ / "workshop");
    fs::create_directories(root_ / "work/library");
    trinity::write_file((root_ / "outside.txt").string(), "outside");
    trinity::write_file((root_ / "work/inside.txt").string(), "inside");
    fs::create_directory_symlink("..", root_ / "work/up");
    fs::create_symlink("../outside.txt", root_ / "work/link.txt");
    fs::current_path(root_ / "work");
  }
  ~Folders() {
    fs::current_path(before_);
    fs::remove_all(root_);
  }
  std::string at(const char* path) const { return (root_ / path).string(); }

 private:
  fs::path before_ = fs::current_path();
  fs::path root_;
};

}  // namespace

TEST_CASE("a restricted thread reads below its working directory and the readable folders") {
  const Folders folders;
  in_thread([&] {
    trinity::restrict_files({}, {folders.at("workshop")});
    for (const auto& path : {std::string("inside.txt"), std::string("./sub/../inside.txt"),
                             folders.at("work/inside.txt")})
      CHECK_NOTHROW(trinity::read_file(path));
    CHECK(trinity::read_file("inside.txt") == "inside");
    const char* outside = "which a safe script may not leave";
    for (const auto& [path, text] :
         {std::pair{std::string("../outside.txt"), outside}, {folders.at("outside.txt"), outside},
          {std::string("up/outside.txt"), outside}, {std::string("link.txt"), outside},
          {std::string("/proc/self/cwd/../outside.txt"), outside},
          {folders.at("work-shop.txt"), outside},
          {std::string("inside.txt\0/../../outside.txt", 30), "name contains a zero byte"}}) {
      CAPTURE(path);
      CHECK_THROWS_WITH_AS(trinity::read_file(path), doctest::Contains(text), FileError);
    }
  });
  CHECK(trinity::read_file(folders.at("outside.txt")) == "outside");  // other threads are free
}

TEST_CASE(
    "a restricted thread writes below its working directory, but nothing hidden or readable") {
  const Folders folders;
  in_thread([&] {
    trinity::restrict_files({"."}, {folders.at("work/library")});
    CHECK_NOTHROW(trinity::write_file("new/deep/file.json", "{}"));
    CHECK_NOTHROW(trinity::write_file("sub/file.json", "{}"));
    CHECK(trinity::read_file("sub/file.json") == "{}");
    const char *outside = "which a safe script may not leave", *hidden = "a hidden file",
               *ours = "a file of trinity";
    for (const auto& [path, text] :
         {std::pair{std::string("../new.txt"), outside}, {folders.at("new.txt"), outside},
          {std::string("up/new.txt"), outside}, {std::string("link.txt"), outside},
          {std::string(".profile"), hidden}, {std::string("sub/.config/new.txt"), hidden},
          {std::string("library/init.lua"), ours}, {std::string("sub/../library/init.lua"), ours},
          {std::string("."), "the folder itself"}, {std::string(""), "cannot write"},
          {std::string("run.json"), "run records are written by trinity"},
          {std::string("sub/run.json"), "run records are written by trinity"},
          {std::string("new\0.txt", 8), "the file name contains a zero byte"},
          {folders.at("workshop/new.txt"), outside}}) {
      CAPTURE(path);
      CHECK_THROWS_WITH_AS(trinity::write_file(path, "x"), doctest::Contains(text), FileError);
    }
  });
  CHECK(trinity::read_file(folders.at("outside.txt")) == "outside");
  CHECK(!fs::exists(folders.at("new.txt")));
  CHECK(fs::is_empty(folders.at("workshop")));
}
