#include "learn/torch/attention.h"

#include "base/stop.h"

namespace trinity {
namespace {

class AdditiveScores : public torch::autograd::Function<AdditiveScores> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& query, const torch::Tensor& memory,
                               const torch::Tensor& v) {
    auto scores = torch::empty({query.size(0), query.size(1), memory.size(1)}, query.options());
    auto mixed = torch::empty_like(memory);
    for (int64_t t = 0; t < query.size(1); ++t) {
      poll_stop();
      mix(mixed, query, memory, t);
      scores.select(1, t).copy_(torch::matmul(mixed, v));
    }
    context->save_for_backward({query, memory, v});
    return scores;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &query = saved[0], &memory = saved[1], &v = saved[2];
    auto d_query = torch::zeros_like(query);
    auto d_memory = torch::zeros_like(memory), d_v = torch::zeros_like(v);
    auto mixed = torch::empty_like(memory);
    const auto gradient = gradients[0].contiguous();
    for (int64_t t = 0; t < query.size(1); ++t) {
      poll_stop();
      mix(mixed, query, memory, t);
      accumulate(mixed, gradient, v, t, d_query, d_memory, d_v);
    }
    return {d_query, d_memory, d_v};
  }

 private:
  static void mix(torch::Tensor& mixed, const torch::Tensor& query, const torch::Tensor& memory,
                  int64_t t) {
    torch::add_out(mixed, memory, query.select(1, t).unsqueeze(1));
    mixed.tanh_();
  }

  /// One pass over mixed = tanh(query_t + memory): d tanh is (1 - mixed^2) v times the score's
  /// gradient, and goes to the query, the memory and, as mixed itself, to v.
  static void accumulate(const torch::Tensor& mixed, const torch::Tensor& gradient,
                         const torch::Tensor& v, int64_t t, torch::Tensor& d_query,
                         torch::Tensor& d_memory, torch::Tensor& d_v) {
    const int64_t samples = mixed.size(0), keys = mixed.size(1), width = mixed.size(2);
    const int64_t steps = d_query.size(1);
    const float* __restrict x = mixed.data_ptr<float>();
    const float* __restrict weight = v.data_ptr<float>();
    float* __restrict to_memory = d_memory.data_ptr<float>();
    float* __restrict to_v = d_v.data_ptr<float>();
    for (int64_t s = 0; s < samples; ++s) {
      const float* row = gradient.data_ptr<float>() + (s * steps + t) * keys;
      float* __restrict to_query = d_query.data_ptr<float>() + (s * steps + t) * width;
      for (int64_t j = 0; j < keys; ++j, x += width, to_memory += width) {
        const float g = row[j];
        for (int64_t h = 0; h < width; ++h) {
          const float d = g * weight[h] * (1 - x[h] * x[h]);
          to_query[h] += d;
          to_memory[h] += d;
          to_v[h] += g * x[h];
        }
      }
    }
  }
};

}  // namespace

torch::Tensor additive_scores(const torch::Tensor& query, const torch::Tensor& memory,
                              const torch::Tensor& v) {
  // A GPU has the memory for the whole intermediate, and no use for loops over plain arrays.
  if (query.is_cuda())
    return torch::matmul(torch::tanh(query.unsqueeze(2) + memory.unsqueeze(1)), v);
  return AdditiveScores::apply(query.contiguous(), memory.contiguous(), v);
}

}  // namespace trinity
