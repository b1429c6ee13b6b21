#include "execute/kernels/kernels.h"

namespace trinity {
namespace {

struct State {
  at::Tensor h, c;
};

State step(const at::Tensor& gates, const at::Tensor& c_before) {
  const auto parts = gates.chunk(4, 1);
  const auto i = at::sigmoid(parts[0]), o = at::sigmoid(parts[1]), f = at::sigmoid(parts[2]);
  const auto c = f * c_before + i * at::tanh(parts[3]);
  return {o * at::tanh(c), c};
}

/// One LSTM step: x [N, I], h [N, H], c [N, H], weight [I + H, 4 H], bias [4 H] to h, c; gates in
/// the order i, o, f, c as in ONNX's LSTM.
std::vector<at::Tensor> lstm_cell_kernel(const KernelCall& call) {
  const auto joined = at::cat({call.argument(0), call.argument(1)}, 1);
  auto gates = at::matmul(joined, call.argument(3));
  if (call.has_argument(4)) gates = gates + call.argument(4);
  const auto next = step(gates, call.argument(2));
  return {next.h, next.c};
}

/// ONNX's LSTM with one or two directions: X, W [D, 4H, I], R [D, 4H, H], B [D, 8H] to Y and the
/// last h and c; layout 1 has the batch first.
std::vector<at::Tensor> lstm_kernel(const KernelCall& call) {
  const bool batch_first = call.integer("layout", 0) == 1;
  const at::Tensor x = batch_first ? call.inputs[0].transpose(0, 1) : call.inputs[0];
  const at::Tensor &w = call.argument(1), &r = call.argument(2);
  const int64_t steps = x.size(0), batch = x.size(1), hidden = r.size(2), directions = w.size(0);
  std::vector<at::Tensor> outputs, last_h, last_c;
  for (int64_t d = 0; d < directions; ++d) {
    const bool reverse = d == 1 || call.text("direction", "forward") == "reverse";
    auto gates = at::matmul(x, w[d].t());
    if (call.has_argument(3))
      gates = gates + call.argument(3)[d].slice(0, 0, 4 * hidden) +
              call.argument(3)[d].slice(0, 4 * hidden);
    State state{at::zeros({batch, hidden}, x.options()), at::zeros({batch, hidden}, x.options())};
    std::vector<at::Tensor> states(static_cast<size_t>(steps));
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = reverse ? steps - 1 - i : i;
      state = step(gates[t] + at::matmul(state.h, r[d].t()), state.c);
      states[t] = state.h;
    }
    outputs.push_back(at::stack(states, 0));
    last_h.push_back(state.h);
    last_c.push_back(state.c);
  }
  const auto y = at::stack(outputs, 1), h = at::stack(last_h, 0), c = at::stack(last_c, 0);
  if (!batch_first) return {y, h, c};
  return {y.permute({2, 0, 1, 3}).contiguous(), h.transpose(0, 1).contiguous(),
          c.transpose(0, 1).contiguous()};
}

/// ONNX's GRU with one or two directions: X, W [D, 3H, I], R [D, 3H, H], B [D, 6H] to Y and the
/// last h; gates in the order z, r, h.
std::vector<at::Tensor> gru_kernel(const KernelCall& call) {
  const bool batch_first = call.integer("layout", 0) == 1;
  const bool linear_first = call.integer("linear_before_reset", 0) != 0;
  const at::Tensor x = batch_first ? call.inputs[0].transpose(0, 1) : call.inputs[0];
  const at::Tensor &w = call.argument(1), &r = call.argument(2);
  const int64_t steps = x.size(0), batch = x.size(1), hidden = r.size(2), directions = w.size(0);
  std::vector<at::Tensor> outputs, last;
  for (int64_t d = 0; d < directions; ++d) {
    const bool reverse = d == 1 || call.text("direction", "forward") == "reverse";
    const auto bias =
        call.has_argument(3) ? call.argument(3)[d] : at::zeros({6 * hidden}, x.options());
    const auto gates = (at::matmul(x, w[d].t()) + bias.slice(0, 0, 3 * hidden)).chunk(3, -1);
    const auto recurrent = r[d].chunk(3, 0), offsets = bias.slice(0, 3 * hidden).chunk(3, 0);
    const auto product = [&](const at::Tensor& h, size_t gate) {
      return at::matmul(h, recurrent[gate].t()) + offsets[gate];
    };
    at::Tensor h = at::zeros({batch, hidden}, x.options());
    std::vector<at::Tensor> states(static_cast<size_t>(steps));
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = reverse ? steps - 1 - i : i;
      const auto update = at::sigmoid(gates[0][t] + product(h, 0));
      const auto reset = at::sigmoid(gates[1][t] + product(h, 1));
      const auto next =
          at::tanh(gates[2][t] + (linear_first ? reset * product(h, 2) : product(reset * h, 2)));
      h = (1 - update) * next + update * h;
      states[t] = h;
    }
    outputs.push_back(at::stack(states, 0));
    last.push_back(h);
  }
  const auto y = at::stack(outputs, 1), h = at::stack(last, 0);
  if (!batch_first) return {y, h};
  return {y.permute({2, 0, 1, 3}).contiguous(), h.transpose(0, 1).contiguous()};
}

}  // namespace

void add_recurrent_kernels(KernelTable& table) {
  table.insert({{"LSTM", lstm_kernel}, {"GRU", gru_kernel}, {"LSTMCell", lstm_cell_kernel}});
}

}  // namespace trinity
