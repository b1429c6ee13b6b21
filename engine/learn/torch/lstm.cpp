#include "learn/torch/lstm.h"

#include "base/stop.h"

namespace trinity {
namespace {

/// The recurrence alone: gates_in [T, S, 4H] already holds input times weight plus bias.
class Recurrence : public torch::autograd::Function<Recurrence> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const torch::Tensor& gates_in,
                                                const torch::Tensor& state,
                                                const torch::Tensor& cell,
                                                const torch::Tensor& weight) {
    const int64_t steps = gates_in.size(0), width = weight.size(1);
    const auto transposed = weight.t();
    auto gates = gates_in.clone();  // becomes the activated gates, step by step
    auto hidden = torch::empty({steps, state.size(0), width}, state.options());
    auto cells = torch::empty_like(hidden), squashed = torch::empty_like(hidden);
    torch::Tensor h = state, c = cell;
    for (int64_t t = 0; t < steps; ++t) {
      poll_stop();
      auto g = gates[t];
      g.addmm_(h, transposed);
      g.slice(1, 0, 2 * width).sigmoid_();
      g.slice(1, 2 * width, 3 * width).tanh_();
      g.slice(1, 3 * width).sigmoid_();
      auto c_new = cells[t], tanh_c = squashed[t], h_new = hidden[t];
      torch::mul_out(c_new, g.slice(1, width, 2 * width), c);
      c_new.addcmul_(g.slice(1, 0, width), g.slice(1, 2 * width, 3 * width));
      torch::tanh_out(tanh_c, c_new);
      torch::mul_out(h_new, g.slice(1, 3 * width), tanh_c);
      h = h_new;
      c = c_new;
    }
    context->save_for_backward({gates, hidden, cells, squashed, state, cell, weight});
    return {hidden, cells[steps - 1].clone()};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &gates = saved[0], &hidden = saved[1], &cells = saved[2], &squashed = saved[3];
    const auto &state = saved[4], &cell = saved[5], &weight = saved[6];
    const int64_t steps = gates.size(0), width = weight.size(1);
    auto d_gates = torch::empty_like(gates);
    auto dh = torch::zeros_like(state);
    auto dc = gradients[1].defined() ? gradients[1].clone() : torch::zeros_like(cell);
    for (int64_t t = steps - 1; t >= 0; --t) {
      poll_stop();
      if (gradients[0].defined()) dh = dh + gradients[0][t];
      const auto g = gates[t];
      const auto i = g.slice(1, 0, width), f = g.slice(1, width, 2 * width);
      const auto j = g.slice(1, 2 * width, 3 * width), o = g.slice(1, 3 * width);
      const auto& tanh_c = squashed[t];
      dc = dc + dh * o * (1 - tanh_c * tanh_c);
      auto d = d_gates[t];
      d.slice(1, 0, width).copy_(dc * j * i * (1 - i));
      d.slice(1, width, 2 * width).copy_(dc * (t > 0 ? cells[t - 1] : cell) * f * (1 - f));
      d.slice(1, 2 * width, 3 * width).copy_(dc * i * (1 - j * j));
      d.slice(1, 3 * width).copy_(dh * tanh_c * o * (1 - o));
      dc = dc * f;
      dh = torch::mm(d, weight);
    }
    const auto before = torch::cat({state.unsqueeze(0), hidden.slice(0, 0, steps - 1)}, 0);
    const auto d_weight =
        torch::mm(d_gates.reshape({-1, 4 * width}).t(), before.reshape({-1, width}));
    return {d_gates, dh, dc, d_weight};
  }
};

}  // namespace

LstmImpl::LstmImpl(int64_t input, int64_t hidden) {
  input_ = register_module("input", torch::nn::Linear(input, 4 * hidden));
  recurrent_ = register_parameter("recurrent", torch::empty({4 * hidden, hidden}));
}

LstmImpl::Output LstmImpl::forward(const torch::Tensor& x, const torch::Tensor& state,
                                   const torch::Tensor& cell) {
  const auto result = Recurrence::apply(input_(x), state, cell, recurrent_);
  return {result[0], result[1]};
}

}  // namespace trinity
