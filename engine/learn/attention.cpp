#include "learn/attention.h"

namespace trinity {
namespace {

using torch::Tensor;

class AdditiveScores : public torch::autograd::Function<AdditiveScores> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& query,
                        const Tensor& memory, const Tensor& v) {
    auto scores = torch::empty({query.size(0), query.size(1), memory.size(1)}, query.options());
    auto mixed = torch::empty_like(memory);
    for (int64_t t = 0; t < query.size(1); ++t) {
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
    auto d_query = torch::empty_like(query);
    auto d_memory = torch::zeros_like(memory), d_v = torch::zeros_like(v);
    auto mixed = torch::empty_like(memory);
    for (int64_t t = 0; t < query.size(1); ++t) {
      mix(mixed, query, memory, t);
      const auto gradient = gradients[0].select(1, t).contiguous();
      d_v += torch::mv(mixed.view({-1, v.size(0)}).t(), gradient.view({-1}));
      // d tanh: (1 - mixed^2) v, times the score's gradient.
      mixed.mul_(mixed).neg_().add_(1).mul_(v).mul_(gradient.unsqueeze(2));
      d_query.select(1, t).copy_(mixed.sum(1));
      d_memory += mixed;
    }
    return {d_query, d_memory, d_v};
  }

 private:
  static void mix(Tensor& mixed, const Tensor& query, const Tensor& memory, int64_t t) {
    torch::add_out(mixed, memory, query.select(1, t).unsqueeze(1));
    mixed.tanh_();
  }
};

}  // namespace

Tensor additive_scores(const Tensor& query, const Tensor& memory, const Tensor& v) {
  return AdditiveScores::apply(query.contiguous(), memory.contiguous(), v);
}

}  // namespace trinity
