#include "distribute/heartbeat.h"

#include "libtorch/torch.h"

#include "base/error.h"
#include "distribute/job.h"

// LibTorch has a CHECK of its own, which ends the process.
#undef CHECK
#include <doctest/doctest.h>

using namespace trinity;

namespace {

/// Two nodes of two ranks, all computing.
std::vector<Seen> four_ranks() {
  std::vector<Seen> ranks(4);
  for (size_t r = 0; r < 4; ++r) {
    ranks[r].heartbeat.node = static_cast<int>(r / 2);
    ranks[r].heartbeat.local_rank = static_cast<int>(r % 2);
    ranks[r].heartbeat.begun = {5, 9, 3, 1};
  }
  return ranks;
}

void wait_for(Seen& rank, Scope scope, double seconds) {
  rank.heartbeat.what = "all_reduce";
  rank.heartbeat.scope = scope;
  rank.heartbeat.number = ++rank.heartbeat.begun[static_cast<size_t>(scope)];
  rank.heartbeat.waiting_s = seconds;
}

}  // namespace

TEST_CASE("heartbeat: text and back") {
  auto heartbeat = four_ranks()[3].heartbeat;
  heartbeat.beat = 17;
  heartbeat.has_left = true;
  heartbeat.number = 4;
  heartbeat.scope = Scope::across;
  heartbeat.waiting_s = 1.5;
  heartbeat.what = "broadcast";
  heartbeat.broken = "connection closed by peer";
  const auto back = Heartbeat::parse(heartbeat.text());
  CHECK(back.text() == heartbeat.text());
  CHECK(back.broken == heartbeat.broken);
  CHECK(back.scope == Scope::across);
  CHECK_THROWS_AS(Heartbeat::parse("nothing"), Error);
}

TEST_CASE("judge: all is well") {
  auto ranks = four_ranks();
  CHECK_FALSE(judge(ranks, {}));
  wait_for(ranks[0], Scope::world, 19);
  CHECK_FALSE(judge(ranks, {}));
}

TEST_CASE("judge: a silent rank is dead") {
  auto ranks = four_ranks();
  ranks[2].silent_s = 11;
  CHECK(judge(ranks, {}).value().starts_with("rank 2 has not answered for 11 s"));
  ranks[2].heartbeat.has_left = true;
  CHECK_FALSE(judge(ranks, {}));
}

TEST_CASE("judge: the rank that others wait for hangs, not one that waits itself") {
  auto ranks = four_ranks();
  wait_for(ranks[2], Scope::node, 21);    // for rank 3
  wait_for(ranks[0], Scope::across, 21);  // for rank 2, which waits itself
  CHECK(judge(ranks, {}).value() ==
        "rank 3 hangs: for 21 s rank 2 has waited for it in all_reduce 10 (node)");
}

TEST_CASE("judge: a rank that left while others wait for it") {
  auto ranks = four_ranks();
  ranks[1].heartbeat.has_left = true;
  CHECK_FALSE(judge(ranks, {}));
  wait_for(ranks[0], Scope::world, 0);
  CHECK_FALSE(judge(ranks, {}));  // its launcher may say first how it ended
  ranks[1].silent_s = 2;
  CHECK(judge(ranks, {}).value().starts_with("rank 1 has left the job"));
  ranks[0].heartbeat.scope = Scope::across;  // rank 1 has no part in it
  ranks[0].heartbeat.number = 4;
  CHECK_FALSE(judge(ranks, {}));
}

TEST_CASE("judge: ranks that wait for each other") {
  auto ranks = four_ranks();
  wait_for(ranks[0], Scope::world, 25);
  wait_for(ranks[1], Scope::node, 25);
  ranks[2].heartbeat.begun[0] = ranks[3].heartbeat.begun[0] = 6;
  CHECK(judge(ranks, {}).value() ==
        "rank 0 and rank 1 wait for each other, rank 0 in all_reduce 6 (world), rank 1 in "
        "all_reduce 10 "
        "(node)");
}

TEST_CASE("injected link: the time of a ring") {
  const InjectedLink link{1e-3, 1e6};
  CHECK(link.delay_s(1e6, 2, false) == doctest::Approx(2e-3 + 1));
  CHECK(link.delay_s(1e6, 4, false) == doctest::Approx(6e-3 + 1.5));
  CHECK(link.delay_s(1e6, 2, true) == doctest::Approx(1e-3 + 1));
  CHECK(InjectedLink{}.delay_s(1e6, 4, false) == 0);
}

TEST_CASE("job of one process: collectives leave tensors alone") {
  const auto job = Job::join(LaunchVariables{}, {});
  CHECK(job->size() == 1);
  CHECK(job->nodes() == 1);
  const auto tensor = at::tensor({1.5f, -2.0f});
  job->wait(*job->begin_all_reduce(tensor, {}));
  job->wait(*job->begin_broadcast(tensor, Scope::world, 0));
  CHECK(at::equal(tensor, at::tensor({1.5f, -2.0f})));
  std::vector<double> values = {3, 4};
  job->sum(values);
  CHECK(values == std::vector<double>{3, 4});
  job->barrier();
  job->agree("", "anything", "text");
  job->close();
  job->close();
}

TEST_CASE("ranks are named with their node where there are several, and its machine") {
  auto ranks = four_ranks();
  CHECK(name_rank(ranks, 3) == "rank 3");  // nobody has said anything yet
  for (auto& rank : ranks) rank.heartbeat.beat = 1;
  CHECK(name_rank(ranks, 3) == "rank 3 (node 1)");
  ranks[2].silent_s = 11;
  CHECK(judge(ranks, {}).value().starts_with("rank 2 (node 1) has not answered for 11 s"));
  ranks[2].heartbeat.host = ranks[3].heartbeat.host = "jwb0017";
  CHECK(name_rank(ranks, 3) == "rank 3 (node 1, jwb0017)");
  CHECK(Heartbeat::parse(ranks[3].heartbeat.text()).host == "jwb0017");
  for (auto& rank : ranks) rank.heartbeat.node = 0;
  CHECK(name_rank(ranks, 3) == "rank 3");
}
