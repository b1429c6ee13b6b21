#include "learn/torch/recurrence.h"

#include "base/stop.h"

namespace trinity {
namespace {

/// Part `index` (input, forget, cell, output) of gates [..., 4H].
torch::Tensor part(const torch::Tensor& gates, int64_t index, int64_t count = 1) {
  const int64_t width = gates.size(-1) / 4;
  return gates.narrow(-1, index * width, count * width);
}

/// hidden [D, S, M] times weight [D, M, N], added to gates [D, S, N].
void add_product(const torch::Tensor& gates, const torch::Tensor& hidden,
                 const torch::Tensor& weight) {
  for (int64_t d = 0; d < gates.size(0); ++d) gates[d].addmm_(hidden[d], weight[d]);
}

/// Values before each step: `first`, then those of all steps but the last.
torch::Tensor before(const torch::Tensor& first, const torch::Tensor& steps) {
  return torch::cat({first.unsqueeze(1), steps.narrow(1, 0, steps.size(1) - 1)}, 1);
}

/// LibTorch's tanh takes three times as long as its logistic function: tanh(x) = 2 sigmoid(2 x)
/// - 1.
torch::Tensor tanh_of_sigmoid(const torch::Tensor& sigmoid) {
  return torch::add(sigmoid, sigmoid).sub_(1);
}

class Recurrence : public torch::autograd::Function<Recurrence> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const torch::Tensor& gates_in,
                                                const torch::Tensor& state,
                                                const torch::Tensor& cell,
                                                const torch::Tensor& weight,
                                                const LstmSteps* known) {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    const auto made = known ? *known : run(gates_in.contiguous(), state, cell, weight);
    context->saved_data["starts"] = state.requires_grad();
    context->save_for_backward(
        {made.gates, made.hidden, made.cells, made.squashed, state, cell, weight});
    return {made.hidden, made.cells.select(1, made.cells.size(1) - 1).clone()};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    const auto saved = context->get_saved_variables();
    const auto &gates = saved[0], &hidden = saved[1], &cells = saved[2];
    const auto &state = saved[4], &cell = saved[5], &weight = saved[6];
    const int64_t directions = gates.size(0), steps = gates.size(1), samples = gates.size(2);
    const int64_t width = weight.size(2);
    // What a gate's gradient is of that of the cell (the output gate's: of the hidden state), and
    // what passes from the hidden state to the cell.
    const auto i = part(gates, 0), o = part(gates, 3);
    const auto j = tanh_of_sigmoid(part(gates, 2)), tanh_cells = tanh_of_sigmoid(saved[3]);
    const auto slope = torch::addcmul(gates, gates, gates, -1);
    auto cell_slope = part(slope, 2);
    part(slope, 0).mul_(j);
    part(slope, 1).mul_(before(cell, cells));
    torch::addcmul_out(cell_slope, i, i * j, j, -1);
    part(slope, 3).mul_(tanh_cells);
    const auto passed = torch::addcmul(o, o * tanh_cells, tanh_cells, -1);
    const auto d_gates = torch::empty_like(gates);
    const auto by_gate = d_gates.view({directions, steps, samples, 4, width});
    const auto slopes = slope.view(by_gate.sizes());
    const auto d_hidden = gradients[0].defined() ? gradients[0].clone(at::MemoryFormat::Contiguous)
                                                 : torch::zeros_like(hidden);
    auto d_cell = gradients[1].defined() ? gradients[1].clone() : torch::zeros_like(cell);
    for (int64_t t = steps - 1; t >= 0; --t) {
      poll_stop();
      const auto dh = d_hidden.select(1, t), d = by_gate.select(1, t), s = slopes.select(1, t);
      if (t + 1 < steps) add_product(dh, d_gates.select(1, t + 1), weight);
      d_cell.addcmul_(dh, passed.select(1, t));
      auto to_cell = d.narrow(2, 0, 3), to_output = d.select(2, 3);
      torch::mul_out(to_cell, s.narrow(2, 0, 3), d_cell.unsqueeze(2));
      torch::mul_out(to_output, s.select(2, 3), dh);
      d_cell.mul_(part(gates.select(1, t), 1));
    }
    const auto rows = d_gates.view({directions, steps * samples, 4 * width});
    const auto states = before(state, hidden).view({directions, steps * samples, width});
    torch::Tensor d_state;
    if (context->saved_data["starts"].toBool()) d_state = torch::bmm(d_gates.select(1, 0), weight);
    return {d_gates, d_state, d_cell, torch::bmm(rows.transpose(1, 2), states), torch::Tensor()};
  }

 private:
  static LstmSteps run(const torch::Tensor& gates, const torch::Tensor& state,
                       const torch::Tensor& cell, const torch::Tensor& weight) {
    const auto transposed = double_cell_gate(weight.transpose(1, 2).contiguous());
    LstmSteps made(double_cell_gate(gates));
    torch::Tensor h = state, c = cell;
    for (int64_t t = 0; t < gates.size(1); ++t) {
      poll_stop();
      add_product(gates.select(1, t), h, transposed);
      std::tie(h, c) = made.step(t, c);
    }
    return made;
  }
};

}  // namespace

torch::Tensor double_cell_gate(const torch::Tensor& gates) {
  part(gates, 2).mul_(2);
  return gates;
}

LstmSteps::LstmSteps(const torch::Tensor& gates_in)
    : gates(gates_in),
      hidden(torch::empty({gates.size(0), gates.size(1), gates.size(2), gates.size(3) / 4},
                          gates.options())),
      cells(torch::empty_like(hidden)),
      squashed(torch::empty_like(hidden)) {}

std::pair<torch::Tensor, torch::Tensor> LstmSteps::step(int64_t t,
                                                        const torch::Tensor& cell) const {
  const auto g = gates.select(1, t);
  const auto i = part(g, 0), o = part(g, 3);
  auto c = cells.select(1, t), twice = squashed.select(1, t), h = hidden.select(1, t);
  g.sigmoid_();
  torch::mul_out(c, part(g, 1), cell);
  c.sub_(i).addcmul_(i, part(g, 2), 2);
  torch::add_out(twice, c, c);
  twice.sigmoid_();
  torch::mul_out(h, o, twice);
  h.add_(h).sub_(o);
  return {h, c};
}

torch::autograd::variable_list lstm(const torch::Tensor& gates, const torch::Tensor& state,
                                    const torch::Tensor& cell, const torch::Tensor& weight,
                                    const LstmSteps* known) {
  return Recurrence::apply(gates, state, cell, weight, known);
}

}  // namespace trinity
