// Saved policies: resumed runs, transfer, files of something else.
#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "formats/export/safetensors.h"
#include "learn/torch/agent.h"
#include "support/build.h"

using namespace trinity;

namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("trinity_agent_" + std::to_string(std::rand()));
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

std::shared_ptr<const Problem> chain(int operators, int devices, const char* name = "op") {
  test::GraphMaker make("chain");
  for (int i = 0; i < operators; ++i) {
    make.op(name + std::to_string(i), 1e-3 + 1e-5 * i);
    if (i > 0) make.edge(i - 1, i, 1000);
  }
  return std::make_shared<const Problem>(make.share(), test::uniform_cluster(devices, 1e9, 1e-6),
                                         SimulationRules{});
}

AgentOptions options() {
  AgentOptions result;
  result.hidden = 8;
  result.samples = 6;
  result.epochs = 2;
  result.dropout = 0.2;
  result.noise_amplitude = 0.1;
  result.noise_steps = 3;
  result.groups = 5;
  result.features.node2vec.dimensions = 4;
  result.features.node2vec.walks_per_node = 2;
  return result;
}

/// Samples and learns; returns everything that was sampled.
std::vector<int32_t> run(Agent& agent, int batches) {
  std::vector<int32_t> drawn;
  for (int i = 0; i < batches; ++i) {
    const auto batch = agent.sample();
    drawn.insert(drawn.end(), batch.begin(), batch.end());
    std::vector<double> rewards;
    const size_t n = batch.size() / 6;
    for (size_t s = 0; s < 6; ++s) {
      double cuts = 0;
      for (size_t o = 1; o < n; ++o) cuts += batch[s * n + o] != batch[s * n + o - 1];
      rewards.push_back(-cuts);
    }
    agent.update(rewards);
  }
  return drawn;
}

}  // namespace

TEST_CASE("an interrupted and resumed run draws the bytes of an unbroken one") {
  const Folder folder;
  const auto problem = chain(12, 2);
  ThreadPool pool(2);
  Agent unbroken(problem, options(), pool), first(problem, options(), pool);
  const auto all = run(unbroken, 6);
  auto drawn = run(first, 3);
  first.sample();  // sampled, not learned from: sampled again by the resumed run
  first.save(folder.file("run"));
  Agent second(problem, options(), pool);
  second.resume(folder.file("run"));
  const auto rest = run(second, 3);
  drawn.insert(drawn.end(), rest.begin(), rest.end());
  CHECK(drawn == all);
  unbroken.save(folder.file("a"));
  second.save(folder.file("b"));
  CHECK(read_file(folder.file("a")) == read_file(folder.file("b")));
}

TEST_CASE("a run after imitation resumes too") {
  const Folder folder;
  const auto problem = chain(12, 2);
  ThreadPool pool(1);
  Agent first(problem, options(), pool), second(problem, options(), pool);
  first.imitate(std::vector<int32_t>{0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0}, {}, {});
  first.save(folder.file("run"));
  second.resume(folder.file("run"));
  CHECK(run(second, 2) == run(first, 2));
}

TEST_CASE("a run is resumed only on its own problem and with its own options") {
  const Folder folder;
  ThreadPool pool(1);
  Agent agent(chain(12, 2), options(), pool);
  agent.save(folder.file("run"));
  auto other = options();
  other.clip = 0.3;
  CHECK_THROWS_WITH_AS(Agent(chain(12, 2), other, pool).resume(folder.file("run")),
                       doctest::Contains("option 'clip' = 0.2, this one 0.3"), FileError);
  CHECK_THROWS_WITH_AS(Agent(chain(13, 2), options(), pool).resume(folder.file("run")),
                       doctest::Contains("another graph or cluster"), FileError);
}

TEST_CASE("weights transfer: all of them to the same problem, the common ones to others") {
  const Folder folder;
  ThreadPool pool(1);
  const auto problem = chain(12, 2);
  Agent agent(problem, options(), pool);
  run(agent, 3);
  agent.save(folder.file("policy"));
  auto seeded = options();
  seeded.seed = 2;
  Agent same(problem, seeded, pool);
  // All but the columns of node2vec, whose directions a graph gives again.
  const double missing = 4.0 * 64 / static_cast<double>(same.parameter_count());
  CHECK(same.load(folder.file("policy")) == doctest::Approx(1 - missing));
  auto plain = options();  // without them the loaded policy is the saved one
  plain.features.node2vec.dimensions = 0;
  const auto four = chain(12, 4);
  Agent saved(four, plain, pool);
  run(saved, 3);
  saved.save(folder.file("plain"));
  plain.seed = 2;
  Agent loaded(four, plain, pool);
  CHECK(loaded.greedy() != saved.greedy());
  CHECK(loaded.load(folder.file("plain")) == 1);
  CHECK(loaded.greedy() == saved.greedy());

  auto more_groups = options();
  more_groups.groups = 9;
  Agent longer(chain(30, 2), more_groups, pool);
  CHECK(longer.load(folder.file("policy")) > 0.9);
  Agent wider(chain(12, 4), options(), pool);
  const double share = wider.load(folder.file("policy"));
  CHECK(share > 0.5);
  CHECK(share < 1 - missing);
  run(longer, 1);
  run(wider, 1);

  auto narrow = options();
  narrow.hidden = 7;
  CHECK_THROWS_WITH_AS(Agent(problem, narrow, pool).load(folder.file("policy")),
                       doctest::Contains("'hidden' = 8, this one 7"), FileError);
}

TEST_CASE("the column of a type's index transfers only where it counts the same types") {
  const Folder folder;
  ThreadPool pool(1);
  auto code = options();
  code.features.type_index = true;
  const auto typed = [](const char* first, const char* second) {
    GraphBuilder builder("typed");
    for (int i = 0; i < 8; ++i)
      builder.add_operator({.name = "op" + std::to_string(i), .type = i % 3 == 0 ? first : second,
                            .measured_time_s = 1e-3});
    return std::make_shared<const Problem>(std::make_shared<const Graph>(builder.build()),
                                           test::uniform_cluster(2, 1e9, 1e-6), SimulationRules{});
  };
  Agent(typed("Conv", "Relu"), code, pool).save(folder.file("policy"));
  const auto share = [&](const char* first, const char* second) {
    auto other = code;
    other.seed = 2;
    Agent agent(typed(first, second), other, pool);
    return agent.load(folder.file("policy")) * static_cast<double>(agent.parameter_count());
  };
  // Relu, the more common one, is number 0 in both: a column of 64 weights means something else.
  const double same = share("Conv", "Relu"), renamed = share("MatMul", "Relu");
  const double histogram = 2 * 4 * 8;  // and MatMul's column of both directions of the encoder
  CHECK(same - renamed == doctest::Approx(64 + histogram));
}

TEST_CASE("files of arrays that hold no policy are refused, and folders that are not there") {
  const Folder folder;
  ThreadPool pool(1);
  Agent agent(chain(6, 2), options(), pool);
  const auto refused = [&](const char* dtype, const std::string& bytes, const char* reason) {
    const std::vector<SavedArray> arrays = {{"prior", dtype, {1}, bytes}};
    write_arrays(folder.file("bad"), arrays, {});
    CHECK_THROWS_WITH_AS(agent.load(folder.file("bad")), doctest::Contains(reason), FileError);
    CHECK_THROWS_WITH_AS(agent.resume(folder.file("bad")), doctest::Contains(reason), FileError);
  };
  refused("F32", std::string(4, '\0'), "its metadata lack 'options'");
  refused("F64", std::string(8, '\0'), "not all float32");
  refused("F32", std::string(4, '\xff'), "a number in it is not finite");
  CHECK_THROWS_AS(agent.load(folder.file("missing")), FileError);
  CHECK_THROWS_AS(agent.save("/proc/nowhere/policy"), FileError);
}
