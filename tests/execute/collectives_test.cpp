// What members of collectives make of what all hand in, told by hand.
#include "execute/collectives.h"

#include <doctest/doctest.h>

using namespace trinity;

namespace {

at::Tensor row(std::vector<double> values) { return at::tensor(values, at::kDouble); }

Operator member(const std::string& type, int64_t replica = 0) {
  Operator op;
  op.type = type;
  op.attributes["replica"] = replica;
  return op;
}

}  // namespace

TEST_CASE("an all-reduce sums, a reduce-scatter gives every replica its share, rounded up") {
  const auto a = row({1, 2, 3, 4, 5}), b = row({10, 20, 30, 40, 50});
  const auto all = member("AllReduce");
  CHECK(at::equal(combine(all, {&all, &all}, {a, b}, {5}), a + b));
  auto first = member("ReduceScatter", 0), second = member("ReduceScatter", 1);
  first.attributes["shares"] = second.attributes["shares"] = int64_t{2};
  CHECK(at::equal(combine(first, {&first, &second}, {a, b}, {}), row({11, 22, 33})));
  CHECK(at::equal(combine(second, {&first, &second}, {a, b}, {}), row({44, 55})));
}

TEST_CASE("a reduce-scatter of blocks and an all-gather are each other's opposite") {
  const auto whole = at::arange(12, at::kDouble).reshape({2, 6});
  auto left = member("ReduceScatter"), right = left;
  for (auto* op : {&left, &right}) op->attributes["axes"] = std::vector<int64_t>{1};
  left.attributes["starts"] = std::vector<int64_t>{0};
  left.attributes["ends"] = std::vector<int64_t>{4};
  right.attributes["starts"] = std::vector<int64_t>{4};
  right.attributes["ends"] = std::vector<int64_t>{6};
  const auto a = combine(left, {&left, &right}, {whole, whole}, {2, 4});
  const auto b = combine(right, {&left, &right}, {whole, whole}, {2, 2});
  CHECK(at::equal(a, 2 * whole.slice(1, 0, 4)));
  auto from = member("AllGather"), to = from;
  from.attributes["begins"] = std::vector<int64_t>{0, 0};
  to.attributes["begins"] = std::vector<int64_t>{0, 4};
  CHECK(at::equal(combine(from, {&from, &to}, {a, b}, {2, 6}), 2 * whole));
}

TEST_CASE("the loss of logits in parts, and its gradient, are those of all logits") {
  auto random = at::detail::createCPUGenerator(7);
  const auto logits = at::empty({5, 6}, at::kDouble).normal_(0, 3, random);
  const auto labels = at::tensor(std::vector<int64_t>{0, 3, 5, 2, 4}, at::kLong);
  std::vector<at::Tensor> given;
  for (const int64_t begin : {0, 2})
    given.push_back(loss_statistics(logits.slice(1, begin, begin == 0 ? 2 : 6), labels, begin));
  Operator one = member("AllReduce"), two = one;
  for (const char* what : {"maximum", "target", "total"}) {
    one.attributes["reduction"] = two.attributes["reduction"] = std::string(what);
    given = {combine(one, {&one, &two}, given, {}), combine(two, {&one, &two}, given, {})};
  }
  const auto leaf = logits.clone().requires_grad_();
  const auto loss = at::cross_entropy_loss(leaf, labels);
  loss.backward();
  CHECK(mean_loss(given[0]) == doctest::Approx(loss.item<double>()).epsilon(1e-12));
  CHECK(mean_loss(given[1]) == mean_loss(given[0]));
  const auto right = loss_gradient(logits.slice(1, 2, 6), labels, given[1], 2, 0.5);
  CHECK(at::allclose(right, 0.5 * leaf.grad().slice(1, 2, 6), 1e-12, 1e-14));
}
