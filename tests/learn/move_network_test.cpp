// The ranker of moves: its gradient, its file, its training.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "formats/export/safetensors.h"
#include "learn/move_trainer.h"
#include "support/build.h"

using namespace trinity;

namespace {

struct PolicyFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("trinity_ranker_" + std::to_string(std::rand()));
  PolicyFolder() { std::filesystem::create_directories(path); }
  ~PolicyFolder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

std::vector<float> random_rows(int32_t count) {
  RandomStream random(5, "rows");
  std::vector<float> rows(static_cast<size_t>(count) * kMoveFeatures.size());
  for (auto& x : rows) x = static_cast<float>(2 * random.uniform() - 1);
  return rows;
}

/// Two layers of blocks with forks and joins, where one device is not best.
std::shared_ptr<const Problem> blocks(int count) {
  test::GraphMaker make("blocks");
  for (int block = 0; block < count; ++block) {
    const int first = 4 * block;
    for (int i = 0; i < 4; ++i)
      make.op("o" + std::to_string(first + i), 1e-3 + 1e-4 * (i + block % 3));
    if (block > 0) make.edge(first - 1, first, 1000);
    for (const int branch : {1, 2}) {
      make.edge(first, first + branch, 100000);
      make.edge(first + branch, first + 3, 100000);
    }
  }
  return std::make_shared<const Problem>(make.share(), test::uniform_cluster(3, 1e9, 1e-6),
                                         SimulationRules{});
}

std::vector<float> trained(int threads, int rounds, const std::string& save = {},
                           const std::string& resume = {}) {
  ThreadPool pool(threads);
  auto network = std::make_shared<MoveNetwork>(std::vector<int32_t>{8}, 3);
  MoveTrainingOptions options;
  options.seed = 4;
  options.evaluations = 60;
  MoveTrainer trainer(network, options, pool);
  const auto problem = blocks(8);
  trainer.add(problem, std::vector<std::vector<int32_t>>{std::vector<int32_t>(32, 0)});
  int round = 0;
  if (!resume.empty()) round = std::stoi(trainer.resume(resume).at("round"));
  for (; round < rounds; ++round) {
    if (round < 2)
      trainer.imitate(4);
    else
      trainer.reinforce(4);
  }
  if (!save.empty()) trainer.save(save, {{"round", std::to_string(rounds)}});
  return network->parameters().values;
}

}  // namespace

TEST_CASE("the ranker's gradient agrees with finite differences") {
  for (const auto& hidden : {std::vector<int32_t>{}, {5}, {6, 4}}) {
    MoveNetwork network(hidden, 4, hidden.size() == 1);
    const int32_t count = 7;
    const auto rows = random_rows(count);
    network.standardise(rows.data(), static_cast<size_t>(count));
    std::vector<float> scores(7), slopes = {1, -2, 0.5f, 0, 3, -1, 1};
    const auto sum = [&] {
      network.score(rows.data(), count, scores.data());
      double total = 0;
      for (size_t i = 0; i < scores.size(); ++i) total += double{slopes[i]} * double{scores[i]};
      return total;
    };
    sum();
    std::vector<float> gradient(static_cast<size_t>(network.parameters().size()), 0);
    network.add_gradient(slopes.data(), gradient);
    auto& values = network.parameters().values;
    for (auto i = 2 * static_cast<size_t>(network.inputs()); i < values.size(); i += 3) {
      const float kept = values[i];
      values[i] = kept + 1e-3f;
      const double above = sum();
      values[i] = kept - 1e-3f;
      const double below = sum();
      values[i] = kept;
      CHECK(double{gradient[i]} == doctest::Approx((above - below) / 2e-3).epsilon(0.05));
    }
  }
}

TEST_CASE("a ranker reads memory features where it has them, and no more; its file says which") {
  const PolicyFolder folder;
  const auto rows = random_rows(1);
  for (const bool memory_features : {false, true}) {
    MoveNetwork network({6}, 2, memory_features);
    CHECK(network.reads_memory_features() == memory_features);
    const auto score_of = [](MoveNetwork& of, const std::vector<float>& row) {
      float score = 0;
      of.score(row.data(), 1, &score);
      return score;
    };
    const float score = score_of(network, rows);
    for (int32_t f = kStepFeatureCount; f < kMoveFeatureCount; ++f) {
      auto changed = rows;
      changed[static_cast<size_t>(f)] += 1;
      CHECK((score_of(network, changed) != score) == memory_features);
    }
    const auto path = folder.file("ranker.safetensors");
    save_move_network(network, path, {});
    const auto loaded = load_move_network(path);
    CHECK(loaded.network->reads_memory_features() == memory_features);
    CHECK(score_of(*loaded.network, rows) == score);
  }
}

TEST_CASE("scores do not depend on what else is scored") {
  MoveNetwork network({6}, 2);
  const auto rows = random_rows(9);
  std::vector<float> all(9), one(1);
  network.score(rows.data(), 9, all.data());
  for (int32_t i = 0; i < 9; ++i) {
    network.score(rows.data() + i * kMoveFeatureCount, 1, one.data());
    CHECK(one[0] == all[static_cast<size_t>(i)]);
  }
}

TEST_CASE("a ranker's file gives the same scores, and foreign or damaged ones are refused") {
  const PolicyFolder folder;
  const auto path = folder.file("moves.safetensors");
  const MoveNetwork network({4, 3}, 9);
  save_move_network(network, path, {{"seed", "9"}});
  const auto loaded = load_move_network(path);
  CHECK(loaded.network->parameters().values == network.parameters().values);
  CHECK(loaded.network->hidden() == std::vector<int32_t>{4, 3});
  CHECK(loaded.notes.at("seed") == "9");
  CHECK_FALSE(loaded.state);
  auto content = read_file(path);
  content[content.size() / 2] ^= 1;
  write_file(path, content);
  CHECK_THROWS_AS(load_move_network(path), FileError);
  const std::vector<float> one{1};
  write_arrays(path, {saved_floats("x", one)}, {});
  CHECK_THROWS_WITH_AS(load_move_network(path), doctest::Contains("not a ranker of moves"),
                       FileError);
  write_arrays(path, {saved_floats("x", one)},
               {{"move_features", "[\"speed\"]"}, {"hidden", "[]"}});
  CHECK_THROWS_WITH_AS(load_move_network(path), doctest::Contains("other move features"), FileError);
  CHECK_THROWS_AS(MoveNetwork({0}, 1), ArgumentError);
}

TEST_CASE("a training has the same weights with any number of threads, and after it went on") {
  const PolicyFolder folder;
  const auto whole = trained(1, 4);
  CHECK(trained(3, 4) == whole);
  const auto path = folder.file("training.safetensors");
  trained(2, 3, path);
  CHECK(trained(2, 4, {}, path) == whole);
  CHECK(trained(2, 3) != whole);
}

TEST_CASE("more moves of a trained ranker improve than of one that is not") {
  ThreadPool pool(2);
  auto network = std::make_shared<MoveNetwork>(std::vector<int32_t>{16}, 3);
  MoveTrainingOptions options;
  options.evaluations = 100;
  MoveTrainer trainer(network, options, pool);
  std::vector<int32_t> scattered(120);
  for (size_t op = 0; op < scattered.size(); ++op) scattered[op] = static_cast<int32_t>(op * 7 % 3);
  trainer.add(blocks(30), std::vector<std::vector<int32_t>>{scattered});
  const auto before = trainer.imitate(8);
  for (int round = 0; round < 4; ++round) trainer.imitate(8);
  const auto after = trainer.imitate(8);
  CHECK(after.improving > before.improving);
  CHECK(after.loss < before.loss);
}
