#include "learn/torch/attention.h"

#include "base/stop.h"
#include "learn/torch/attention_loops.h"

namespace trinity {
namespace {

float* row(const torch::Tensor& tensor, int64_t sample) {
  return tensor.data_ptr<float>() + sample * tensor.stride(0);
}

/// With r = 1 / (1 + exp(2 query_t) exp(2 memory_j)), tanh(query_t + memory_j) = 1 - 2 r: two
/// exponentials in place of a hyperbolic tangent per intermediate number.
class AdditiveScores : public torch::autograd::Function<AdditiveScores> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& query, const torch::Tensor& memory,
                               const torch::Tensor& exponential, const torch::Tensor& v) {
    const auto queries = doubled_exponential(query), weight = v.contiguous();
    const int64_t steps = query.size(1), keys = memory.size(1);
    const auto sums = torch::empty({query.size(0), steps, keys}, v.options());
    for (int64_t s = 0; s < query.size(0); ++s) {
      poll_stop();
      attention_sums(steps, keys, v.size(0), row(queries, s), row(exponential, s),
                     weight.data_ptr<float>(), row(sums, s));
    }
    context->save_for_backward({queries, exponential, v});
    return v.sum() - 2 * sums;
  }

  /// The derivative of tanh is 4 r (1 - r); times v and the score's gradient it goes to the query
  /// and the memory.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &queries = saved[0], &exponential = saved[1], &v = saved[2];
    const auto gradient = gradients[0].contiguous();
    const auto d_query = torch::empty_like(queries), d_memory = torch::zeros_like(exponential);
    const auto weighted = torch::zeros_like(v, at::MemoryFormat::Contiguous);
    for (int64_t s = 0; s < queries.size(0); ++s) {
      poll_stop();
      attention_slopes(queries.size(1), exponential.size(1), v.size(0), row(queries, s),
                       row(exponential, s), row(gradient, s), row(d_query, s), row(d_memory, s),
                       weighted.data_ptr<float>());
    }
    return {d_query.mul_(4 * v), d_memory.mul_(4 * v), torch::Tensor(),
            gradient.sum() - 2 * weighted};
  }
};

}  // namespace

torch::Tensor doubled_exponential(const torch::Tensor& x) {
  return (2 * x).contiguous().clamp_(-42, 42).exp_();
}

torch::Tensor additive_scores(const torch::Tensor& query, const torch::Tensor& memory,
                              const torch::Tensor& exponential, const torch::Tensor& v) {
  if (query.is_cuda())  // which has the memory for the intermediate
    return torch::matmul(torch::tanh(query.unsqueeze(2) + memory.unsqueeze(1)), v);
  return AdditiveScores::apply(query, memory, exponential, v);
}

}  // namespace trinity
