#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "support/tier.h"

namespace {

std::string only_folder;  // of --folder=NAME: the tests of tests/NAME only

/// --reporters=console,seconds prints a line "SECONDS s: TEST" for each test, a line
/// "skip  TEST: ..." for each that needs what is not here, and closes with the counts: what
/// tests/run makes its lists of.
struct Seconds : doctest::IReporter {
  explicit Seconds(const doctest::ContextOptions&) {}
  void test_case_start(const doctest::TestCaseData& test) override { name_ = test.m_name; }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    std::printf("%.6f s: %s\n", stats.seconds, name_);
    if (!stats.testCaseSuccess)
      std::printf("      the laws' seed: %llu\n",
                  static_cast<unsigned long long>(trinity::test::law_seed()));
    ++(stats.testCaseSuccess ? passed_ : failed_);
  }
  void test_case_skipped(const doctest::TestCaseData& test) override {
    const std::string_view file = test.m_file.c_str();
    if (!test.m_skip || test.m_description == nullptr ||  // not of a commit's tests (tier.h)
        (!only_folder.empty() && file.find("/" + only_folder + "/") == file.npos))
      return;
    std::printf("skip  %s: %s is not here\n", test.m_name, test.m_description);
    ++skipped_;
  }
  void test_run_end(const doctest::TestRunStats&) override {
    std::printf("%d passed, %d failed, %d skipped\n", passed_, failed_, skipped_);
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}

 private:
  const char* name_ = "";
  int passed_ = 0, failed_ = 0, skipped_ = 0;
};
REGISTER_REPORTER("seconds", 1, Seconds);

/// The folder for temporary files of this process and of what it starts. It goes in the end.
class OwnFolder {
 public:
  OwnFolder() : path_((std::filesystem::temp_directory_path() / "trinity-tests-XXXXXX").string()) {
    if (mkdtemp(path_.data())) setenv("TMPDIR", path_.c_str(), 1);
  }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

 private:
  std::string path_;
};

}  // namespace

int main(int count, char** words) {
  doctest::Context context;
  for (int i = 1; i < count; ++i)
    if (std::string_view(words[i]).starts_with("--folder=")) only_folder = words[i] + 9;
  if (!only_folder.empty()) context.addFilter("source-file", ("*/" + only_folder + "/*").c_str());
  context.applyCommandLine(count, words);
  const OwnFolder folder;
  return context.run();
}
