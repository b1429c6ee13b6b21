#include "base/apart.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>

#include "base/error.h"

using namespace trinity;

TEST_CASE("a call in a copy of the process gives back its bytes and nothing else") {
  int values[2] = {3, 4};
  int other = 1;
  call_apart("adds", values, sizeof values, [&] {
    values[0] += values[1];
    other = 2;
  });
  CHECK(values[0] == 7);
  CHECK(values[1] == 4);
  CHECK(other == 1);
}

TEST_CASE("a copy of the process that ends by itself or by a signal is an error that names it") {
  int value = 3;
  const auto says = [&](const std::function<void()>& work) -> std::string {
    try {
      call_apart("library", &value, sizeof value, work);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(says([] { _exit(0); }) == "library: ended with exit status 0");
  CHECK(says([] { raise(SIGKILL); }) == "library: ended with signal 9 (Killed)");
  CHECK(value == 3);
}

TEST_CASE("a request to end the process is its own, whatever the copy does with the signal") {
  static std::atomic<int> asked{0};
  struct sigaction ours = {}, before = {};
  ours.sa_handler = [](int) { ++asked; };
  sigaction(SIGTERM, &ours, &before);
  int value = 0;
  call_apart("library", &value, sizeof value, [&] {
    signal(SIGTERM, [](int) { _exit(1); });
    kill(getppid(), SIGTERM);
    value = 1;
  });
  CHECK(value == 1);
  CHECK(asked == 1);
  struct sigaction after = {};
  sigaction(SIGTERM, &before, &after);
  CHECK((after.sa_handler == ours.sa_handler));
}
