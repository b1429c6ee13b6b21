#include "simulator/mesh/fewer_layers.h"

#include "base/index.h"
#include "graph/nameless.h"

namespace trinity {
namespace {

bool same_operator(const Operator& a, const Operator& b) {
  return same_work(a, b) && a.collective < 0 && b.collective < 0 &&
         a.inputs.size() == b.inputs.size() && a.outputs.size() == b.outputs.size();
}

}  // namespace

/// Layer offset of an operator's reference, or an operator outside all layers.
struct FewerLayers::Read {
  int32_t zone, place, offset, output;
  bool operator==(const Read&) const = default;
};

FewerLayers::FewerLayers(const Graph& graph) : graph_(graph), layers_(repeated_layers(graph)) {
  while (!runs_ && front_ < kMostFront && layers_.count > least() + 1) {
    ++front_;
    runs_ = layer_runs(inner_layers(layers_.of, front_), layers_.count - 1 - front_);
    if (runs_ && !equal_layers()) runs_.reset();
  }
}

FewerLayers::Read FewerLayers::read_of(int32_t reader, int32_t tensor) const {
  const int32_t from = graph_.tensor(tensor).producer;
  const int32_t output = tensor - graph_.op(from).outputs.front();
  const auto& place = runs_->places[at(from)];
  if (place.zone < 0) return {-1, from, 0, output};
  return {place.zone, place.place, place.layer - runs_->places[at(reader)].layer, output};
}

bool FewerLayers::equal_layers() const {
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    const auto& place = runs_->places[at(op)];
    if (place.zone < 0 ? !reads_ends_alone(op)
                       : !same(op, runs_->number(place.zone, 1, place.place)))
      return false;
  }
  return true;
}

/// Operators outside read only from the first or last layer.
bool FewerLayers::reads_ends_alone(int32_t op) const {
  const auto at_end = [this](int32_t other) {
    const auto& place = runs_->places[at(other)];
    return place.zone < 0 || place.layer == 0 || place.layer == runs_->layers - 1;
  };
  const auto& about = graph_.op(op);
  return (about.forward < 0 || at_end(about.forward)) &&
         std::all_of(about.inputs.begin(), about.inputs.end(),
                     [&](int32_t input) { return at_end(graph_.tensor(input).producer); });
}

/// True if an operator equals the second layer's operator at its index.
bool FewerLayers::same(int32_t a, int32_t b) const {
  const auto &x = graph_.op(a), &y = graph_.op(b);
  if (!same_operator(x, y)) return false;
  for (size_t i = 0; i < x.outputs.size(); ++i)
    if (!same_tensor(graph_.tensor(x.outputs[i]), graph_.tensor(y.outputs[i]))) return false;
  if ((x.forward < 0) != (y.forward < 0)) return false;
  if (x.forward >= 0) {
    const auto& places = runs_->places;
    const auto &f = places[at(x.forward)], &g = places[at(y.forward)];
    if (f.zone < 0 || f.zone != g.zone || f.place != g.place ||
        f.layer != places[at(a)].layer || g.layer != places[at(b)].layer)
      return false;
  }
  return same_reads(a, b);
}

bool FewerLayers::same_reads(int32_t a, int32_t b) const {
  const int32_t layer = runs_->places[at(a)].layer;
  for (size_t i = 0; i < graph_.op(a).inputs.size(); ++i) {
    const Read x = read_of(a, graph_.op(a).inputs[i]), y = read_of(b, graph_.op(b).inputs[i]);
    if (y.offset < -1 || y.offset > 1) return false;
    if (x == y) continue;
    const bool beyond = (layer == 0 && y.offset == -1) ||
                        (layer == runs_->layers - 1 && y.offset == 1);
    if (!beyond || x.zone >= 0) return false;
  }
  return true;
}

std::shared_ptr<const Graph> FewerLayers::of(int32_t count) {
  const std::lock_guard lock(mutex_);
  auto& made = made_[count];
  if (!made) made = std::make_shared<const Graph>(make(count));
  return made;
}

std::vector<int32_t> FewerLayers::like(int32_t count) const {
  std::vector<int32_t> number(at(graph_.operator_count()), -1);
  int32_t taken = 0;
  for (size_t op = 0; op < number.size(); ++op) {
    const auto& place = runs_->places[op];
    if (place.zone < 0 || kept(place.layer, count)) number[op] = taken++;
  }
  for (size_t op = 0; op < number.size(); ++op)
    if (const auto& place = runs_->places[op]; number[op] < 0)
      number[op] = number[at(runs_->number(place.zone, 0, place.place))];
  return number;
}

/// The second layer's operator at the same index. Equal operators share data with it, which makes
/// comparison fast.
const Operator& FewerLayers::second(int32_t op) const {
  const auto& place = runs_->places[at(op)];
  return graph_.op(place.zone < 0 ? op : runs_->number(place.zone, 1, place.place));
}

/// Adds an operator without inputs and forward operator; `tensor` receives its outputs.
int32_t FewerLayers::add(GraphBuilder& builder, int32_t op, std::vector<int32_t>& tensor) const {
  const auto &about = graph_.op(op), &like = second(op);
  Operator copy = about;
  copy.attributes = like.attributes;
  copy.parameters = like.parameters;
  copy.inputs.clear();
  copy.forward = -1;
  const int32_t number = builder.add_operator(std::move(copy));
  for (size_t o = 0; o < like.outputs.size(); ++o) {
    Tensor made = graph_.tensor(about.outputs[o]);
    made.shape = graph_.tensor(like.outputs[o]).shape;
    tensor[about.outputs[o]] = builder.add_output(number, std::move(made));
  }
  return number;
}

/// number: [operator] in the builder, or -1.
void FewerLayers::add_units(GraphBuilder& builder, const std::vector<int32_t>& number) const {
  for (int32_t unit = 0; unit < graph_.unit_count(); ++unit) {
    int32_t lead = -1;
    for (const int32_t op : graph_.unit(unit)) {
      if (number[op] < 0) continue;
      if (lead >= 0) builder.colocate(lead, number[op]);
      lead = number[op];
    }
  }
}

Graph FewerLayers::make(int32_t count_of_all) const {
  const int32_t last = runs_->layers - 1, count = count_of_all - 1 - front_;
  const auto few = [&](int32_t layer) { return layer == last ? count - 1 : layer; };
  const auto many = [&](int32_t layer) { return layer == count - 1 ? last : layer; };
  // Replacement for an operator that another one refers to.
  const auto instead = [&](int32_t reader, int32_t from) {
    const auto &to = runs_->places[at(reader)], &place = runs_->places[at(from)];
    if (place.zone < 0 || to.zone < 0) return from;
    return runs_->number(place.zone, many(few(to.layer) + place.layer - to.layer), place.place);
  };
  const Nameless nameless;  // names were checked and are kept
  GraphBuilder builder(graph_.name());
  const size_t share = at(layers_.count / count_of_all);
  builder.reserve(at(graph_.operator_count()) / share, graph_.tensors().size() / share);
  std::vector<int32_t> number(at(graph_.operator_count()), -1), taken;
  std::vector<int32_t> tensor(graph_.tensors().size(), -1);
  for (int32_t op = 0; op < graph_.operator_count(); ++op) {
    const auto& place = runs_->places[at(op)];
    if (place.zone >= 0 && !kept(place.layer, count_of_all)) continue;
    number[op] = add(builder, op, tensor);
    taken.push_back(op);
    for (const int32_t input : graph_.op(op).inputs) {
      const int32_t from = graph_.tensor(input).producer;
      const int32_t output = input - graph_.op(from).outputs.front();
      builder.read(number[op], tensor[graph_.op(instead(op, from)).outputs.front() + output]);
    }
  }
  for (const int32_t op : taken)
    if (const int32_t forward = graph_.op(op).forward; forward >= 0)
      builder.op(number[op]).forward = number[instead(op, forward)];
  add_units(builder, number);
  return builder.build();
}

}  // namespace trinity
