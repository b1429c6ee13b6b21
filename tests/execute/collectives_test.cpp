// Results of members of collectives from the inputs of all, computed by hand.
#include "execute/kernels/collectives.h"

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

/// Output of the member at a place, from the inputs of all members that it needs.
at::Tensor made(size_t place, const std::vector<const Operator*>& members,
                std::vector<at::Tensor> given, const std::vector<int64_t>& shape) {
  for (auto& one : given)
    one = needed_of(*members[place], place, members.size(), one, shape);
  return combine(*members[place], members, given, shape);
}

}  // namespace

TEST_CASE("an all-reduce sums, a reduce-scatter gives every replica its share, rounded up") {
  const auto a = row({1, 2, 3, 4, 5}), b = row({10, 20, 30, 40, 50});
  const auto all = member("AllReduce");
  CHECK(at::equal(combine(all, {&all, &all}, {a, b}, {5}), a + b));
  auto first = member("ReduceScatter", 0), second = member("ReduceScatter", 1);
  first.attributes["shares"] = second.attributes["shares"] = int64_t{2};
  CHECK(at::equal(made(0, {&first, &second}, {a, b}, {}), row({11, 22, 33})));
  CHECK(at::equal(made(1, {&first, &second}, {a, b}, {}), row({44, 55})));
}

TEST_CASE("an exchange of tokens brings experts the rows of all ranks, and back") {
  const auto in = member("AllToAll", 0), also = member("AllToAll", 1);
  const auto a = at::arange(24, at::kDouble).reshape({4, 3, 2}), b = a + 100;  // experts, rows, width
  const auto first = made(0, {&in, &also}, {a, b}, {2, 6, 2});
  const auto second = made(1, {&in, &also}, {a, b}, {2, 6, 2});
  CHECK(at::equal(first, at::cat({a.slice(0, 0, 2), b.slice(0, 0, 2)}, 1)));
  CHECK(at::equal(second, at::cat({a.slice(0, 2, 4), b.slice(0, 2, 4)}, 1)));
  CHECK(at::equal(made(0, {&in, &also}, {first, second}, {4, 3, 2}), a));
  CHECK(at::equal(made(1, {&in, &also}, {first, second}, {4, 3, 2}), b));
}

TEST_CASE("a reduce-scatter of blocks and an all-gather are each other's opposite") {
  const auto whole = at::arange(12, at::kDouble).reshape({2, 6});
  auto left = member("ReduceScatter"), right = left;
  for (auto* op : {&left, &right}) op->attributes["axes"] = std::vector<int64_t>{1};
  left.attributes["starts"] = std::vector<int64_t>{0};
  left.attributes["ends"] = std::vector<int64_t>{4};
  right.attributes["starts"] = std::vector<int64_t>{4};
  right.attributes["ends"] = std::vector<int64_t>{6};
  const auto a = made(0, {&left, &right}, {whole, whole}, {2, 4});
  const auto b = made(1, {&left, &right}, {whole, whole}, {2, 2});
  CHECK(at::equal(a, 2 * whole.slice(1, 0, 4)));
  auto from = member("AllGather"), to = from;
  from.attributes["begins"] = std::vector<int64_t>{0, 0};
  to.attributes["begins"] = std::vector<int64_t>{0, 4};
  CHECK(at::equal(combine(from, {&from, &to}, {a, b}, {2, 6}), 2 * whole));
}

TEST_CASE("the loss of logits in parts, and its gradient, equal the loss and gradient of all logits") {
  auto random = at::detail::createCPUGenerator(7);
  const auto logits = at::empty({5, 6}, at::kDouble).normal_(0, 3, random);
  const auto labels = at::tensor(std::vector<int64_t>{0, 3, 5, 2, 4}, at::kLong);
  std::vector<at::Tensor> given;
  for (const int64_t begin : {0, 2})
    given.push_back(loss_statistics(logits.slice(1, begin, begin == 0 ? 2 : 6), labels, {begin, 6}));
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
  const auto right = loss_gradient(logits.slice(1, 2, 6), labels, given[1], {2, 6}, 0.5);
  CHECK(at::allclose(right, 0.5 * leaf.grad().slice(1, 2, 6), 1e-12, 1e-14));
}
