// Small files for the importers, sound and broken, that fuzzing starts from (tests/fuzz): each is
// read or refused with one of the engine's own errors.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "formats/instances/dnn_partitioning.h"
#include "formats/instances/doppler.h"
#include "formats/instances/pipedream.h"
#include "formats/instances/piper.h"
#include "formats/json/graph_json.h"

using namespace trinity;

namespace {

/// An instance and, after a zero byte, a cut of it.
void read_instance_and_cut(const std::string& text, const std::string& source) {
  const auto zero = text.find('\0');
  const auto instance = parse_dnn_partitioning(text.substr(0, zero), source, "corpus");
  if (zero == std::string::npos) return;
  parse_dnn_cut(text.substr(zero + 1), source, instance);
}

using Read = std::function<void(const std::string& text, const std::string& source)>;

const std::map<std::string, Read>& readers() {
  static const std::map<std::string, Read> all = {
      {"graph_json", [](const auto& text, const auto& source) { parse_graph_json(text, source); }},
      {"dnn_partitioning", read_instance_and_cut},
      {"piper", [](const auto& text, const auto& source) { parse_piper(text, source, "corpus"); }},
      {"doppler",
       [](const auto& text, const auto& source) { parse_doppler(text, source, "corpus"); }},
      {"pipedream",
       [](const auto& text, const auto& source) { parse_pipedream(text, source, "corpus"); }}};
  return all;
}

}  // namespace

TEST_CASE("every file of the fuzzing corpus is read, or refused with the file's name") {
  for (const auto& [format, read] : readers()) {
    const auto folder = std::string(TRINITY_SOURCE_DIR) + "/tests/fuzz/corpus/" + format;
    int sound = 0, refused = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string path = entry.path();
      CAPTURE(path);
      CHECK(entry.file_size() < 2048);
      try {
        read(read_file(path), path);
        ++sound;
      } catch (const Error& error) {
        CHECK(std::string(error.what()).starts_with(path));
        ++refused;
      }
    }
    CAPTURE(format);
    CHECK(sound >= 1);
    CHECK(refused >= 5);
  }
}
