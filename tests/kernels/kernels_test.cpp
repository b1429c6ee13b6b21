// Both variants of the kernels against plain loops in double.
#include "kernels/kernels.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/random.h"

using namespace trinity;

namespace {

std::vector<float> numbers(size_t count, uint64_t seed, double range = 1) {
  RandomStream random(seed, "numbers");
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(range * (2 * random.uniform() - 1)));
  return values;
}

double element(const std::vector<float>& values, int64_t index) {
  return static_cast<double>(values[index]);
}

const Kernels* const kBoth[] = {&kernels(), &plain_kernels()};

}  // namespace

TEST_CASE("products of every shape, plain and transposed, equal plain loops") {
  for (const Kernels* k : kBoth) {
    for (const auto& [rows, columns, depth] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {5, 3, 7}, {6, 16, 9}, {13, 40, 600}}) {
      const auto a = numbers(static_cast<size_t>(rows * depth), 1);
      const auto b = numbers(static_cast<size_t>(columns * depth), 2);
      for (const bool transposed : {false, true}) {
        std::vector<float> packed(static_cast<size_t>(k->packed_size(depth, columns)));
        k->pack(depth, columns, b.data(), transposed ? 1 : columns, transposed ? depth : 1,
                packed.data());
        std::vector<float> c(static_cast<size_t>(rows * (columns + 2)), 0.5f);
        k->multiply(rows, columns, depth, a.data(), depth, 1, packed.data(), c.data(), columns + 2);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t n = 0; n < columns; ++n) {
            double sum = 0.5;
            for (int64_t d = 0; d < depth; ++d)
              sum += element(a, i * depth + d) *
                     element(b, transposed ? n * depth + d : d * columns + n);
            CHECK(element(c, i * (columns + 2) + n) == doctest::Approx(sum).epsilon(1e-4));
          }
          CHECK(c[i * (columns + 2) + columns] == 0.5f);  // not beyond
        }
      }
    }
  }
}

TEST_CASE("tanh and softmax agree with the library's to some units in the last place") {
  for (const Kernels* k : kBoth) {
    auto x = numbers(1003, 3, 20);
    x.insert(x.end(), {0.0f, 1e-4f, -1e-4f, 100.0f, -100.0f});
    auto y = x;
    k->scaled_tanh(static_cast<int64_t>(y.size()), 0.5f, y.data());
    for (size_t i = 0; i < x.size(); ++i)
      CHECK(std::abs(static_cast<double>(y[i]) - std::tanh(0.5 * static_cast<double>(x[i]))) <
            5e-7);
    std::vector<float> logs(x.begin(), x.begin() + 33), p(33);
    k->log_softmax(3, 11, logs.data(), p.data());
    for (int64_t r = 0; r < 3; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < 11; ++i) sum += std::exp(element(x, r * 11 + i));
      for (int64_t i = 0; i < 11; ++i) {
        const double expected = std::exp(element(x, r * 11 + i)) / sum;
        CHECK(element(p, r * 11 + i) == doctest::Approx(expected).epsilon(1e-5));
        CHECK(element(logs, r * 11 + i) == doctest::Approx(std::log(expected)).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("Adam's steps are those of its paper") {
  for (const Kernels* k : kBoth) {
    std::vector<float> weight = numbers(9, 4), m(9, 0.0f), v(9, 0.0f);
    std::vector<double> w(weight.begin(), weight.end()), first(9, 0), second(9, 0);
    for (int t = 1; t <= 5; ++t) {
      const auto gradient = numbers(9, static_cast<uint64_t>(10 + t));
      const double rate = 0.01 / (1 - std::pow(0.9, t)), root = std::sqrt(1 - std::pow(0.999, t));
      k->adam(9, weight.data(), gradient.data(), m.data(), v.data(), 0.5f, static_cast<float>(rate),
              static_cast<float>(root));
      for (size_t i = 0; i < 9; ++i) {
        const double g = 0.5 * static_cast<double>(gradient[i]);
        first[i] = 0.9 * first[i] + 0.1 * g;
        second[i] = 0.999 * second[i] + 0.001 * g * g;
        w[i] -= rate * first[i] / (std::sqrt(second[i]) / root + 1e-8);
        CHECK(static_cast<double>(weight[i]) == doctest::Approx(w[i]).epsilon(1e-4));
      }
    }
  }
}
