// Our matmuls, recurrence and attention scores against LibTorch's plain operators, forward and
// backward, in one run: ninja -C build bench_learn && build/bench_learn
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "kernels/kernels.h"
#include "learn/agent.h"
#include "learn/torch/attention.h"
#include "learn/torch/lstm.h"
#include "libtorch/setup.h"

using namespace trinity;

namespace {

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Medians of `runs` alternating runs after one warm-up each, and their ratio.
void compare(const char* name, int runs, const std::function<void()>& ours,
             const std::function<void()>& reference) {
  std::vector<double> a, b;
  for (int i = 0; i <= runs; ++i) {
    const double x = seconds(ours), y = seconds(reference);
    if (i == 0) continue;
    a.push_back(x);
    b.push_back(y);
  }
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const double x = a[a.size() / 2], y = b[b.size() / 2];
  fmt::print("{:<44} {:8.2f} ms   reference {:8.2f} ms   {:.2f} times faster\n", name, x * 1e3,
             y * 1e3, y / x);
}

void bench_lstm(int64_t steps, int64_t samples, int64_t hidden) {
  Lstm ours(20, hidden);
  torch::nn::LSTM theirs(torch::nn::LSTMOptions(20, hidden));
  {
    torch::NoGradGuard no_grad;
    for (auto& weight : ours->parameters()) weight.uniform_(-0.1, 0.1);
  }
  const auto x = torch::randn({steps, samples, 20});
  const auto zeros = torch::zeros({samples, hidden});
  compare(
      fmt::format("LSTM, {} steps, {} samples, width {}", steps, samples, hidden).c_str(), 15,
      [&] { ours->forward(x, zeros, zeros).hidden.sum().backward(); },
      [&] { std::get<0>(theirs->forward(x)).sum().backward(); });
}

void bench_attention(int64_t steps, int64_t samples, int64_t width) {
  const auto make = [&](std::vector<int64_t> shape) {
    return torch::randn(shape).set_requires_grad(true);
  };
  const auto query = make({samples, steps, width}), memory = make({samples, steps, width});
  const auto v = make({width});
  compare(
      fmt::format("attention, {} steps, {} samples, width {}", steps, samples, width).c_str(), 9,
      [&] { additive_scores(query, memory, v).sum().backward(); },
      [&] {
        torch::matmul(torch::tanh(query.unsqueeze(2) + memory.unsqueeze(1)), v).sum().backward();
      });
}

void bench_product(int64_t rows, int64_t columns, int64_t depth) {
  const auto a = torch::randn({rows, depth}), b = torch::randn({columns, depth});
  auto c = torch::zeros({rows, columns}), d = torch::zeros({rows, columns});
  const Kernels& k = kernels();
  std::vector<float> packed(static_cast<size_t>(k.packed_size(depth, columns)));
  k.pack(depth, columns, b.data_ptr<float>(), 1, depth, packed.data());
  const auto transposed = b.t();
  compare(
      fmt::format("product {} x {} x {}, packed once", rows, columns, depth).c_str(), 200,
      [&] {
        k.multiply(rows, columns, depth, a.data_ptr<float>(), depth, 1, packed.data(),
                   c.data_ptr<float>(), columns);
      },
      [&] { d.addmm_(a, transposed); });
}

}  // namespace

int main() {
  use_one_torch_thread();
  fmt::print("{}, one thread, medians\n", describe_torch().text);
  bench_product(5, 1024, 256);
  bench_product(10, 1024, 256);
  bench_product(400, 1024, 256);
  bench_lstm(40, 8, 512);
  bench_lstm(80, 8, 512);
  bench_attention(40, 8, 512);
  bench_attention(80, 8, 512);
  return 0;
}
