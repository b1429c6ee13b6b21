#include "graph/graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/free_aside.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "graph/nameless.h"
#include "graph/operator_types.h"
#include "graph/order.h"

namespace trinity {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 50;

void add_numbers(Hasher& hash, std::span<const int32_t> numbers) {
  hash.add(static_cast<uint64_t>(numbers.size()));
  for (const int32_t number : numbers) hash.add(static_cast<uint64_t>(number));
}

uint64_t fingerprint_of(const Graph& graph) {
  Hasher hash;
  for (const auto& op : graph.operators()) {
    hash.add(op.name).add(op.type).add(static_cast<uint64_t>(op.phase));
    for (const double value : {op.flops, op.measured_time_s, op.traffic_bytes})
      hash.add(std::bit_cast<uint64_t>(value));
    for (const int64_t value : {op.parameter_bytes() + op.persistent_bytes, op.workspace_bytes})
      hash.add(static_cast<uint64_t>(value));
    for (const int32_t value : {op.unit, op.forward, op.collective})
      hash.add(static_cast<uint64_t>(value));
    add_numbers(hash, op.inputs);
    hash.add(static_cast<uint64_t>(op.outputs.size()));
    for (const int32_t output : op.outputs)
      hash.add(static_cast<uint64_t>(graph.tensor(output).bytes))
          .add(static_cast<uint64_t>(graph.tensor(output).dtype));
  }
  for (const auto& collective : graph.collectives()) {
    hash.add(static_cast<uint64_t>(collective.kind))
        .add(static_cast<uint64_t>(collective.algorithm))
        .add(static_cast<uint64_t>(collective.bytes));
    add_numbers(hash, collective.members);
  }
  return hash.value();
}

void check_bytes(const std::string& owner, const char* field, int64_t bytes) {
  if (bytes < 0)
    throw ArgumentError("{}: {} must not be negative, got {}", owner, field, bytes);
  if (bytes > kMaxBytes)
    throw LimitError("{}: {} must not exceed 2^50, got {}", owner, field, bytes);
}

/// Checks the bytes of weights before any unchecked multiplication.
void check_parameters(const std::string& owner, const Operator& op) {
  int64_t total = op.extra_parameter_bytes;
  for (const auto& parameter : op.parameters) {
    int64_t bytes = dtype_bytes(parameter.dtype);
    for (const int64_t extent : parameter.shape) {
      if (extent < 0)
        throw ArgumentError("{}: parameter '{}': extent {} is negative", owner, parameter.name, extent);
      if (__builtin_mul_overflow(bytes, extent, &bytes)) bytes = kMaxBytes + 1;
      bytes = std::min(bytes, kMaxBytes + 1);
    }
    total = std::min(total + bytes, kMaxBytes + 1);
  }
  if (total > kMaxBytes)
    throw LimitError("{}: its weights have more than 2^50 bytes", owner);
}

/// Fast check that almost every operator passes, without building a message.
bool costs_are_plain(const Operator& op) {
  const auto bytes = [](int64_t value) { return value >= 0 && value <= kMaxBytes; };
  return op.flops >= 0 && std::isfinite(op.flops) && std::isfinite(op.traffic_bytes) &&
         std::isfinite(op.measured_time_s) && std::isfinite(op.measured_backward_time_s) &&
         bytes(op.extra_parameter_bytes) && bytes(op.persistent_bytes) &&
         bytes(op.workspace_bytes) && op.parameters.empty();
}

void check_costs(const Operator& op) {
  if (costs_are_plain(op)) return;
  const auto owner = fmt::format("operator '{}'", op.name);
  if (!(op.flops >= 0) || std::isinf(op.flops))
    throw ArgumentError("{}: flops must be finite and not negative, got {}", owner, op.flops);
  const std::pair<const char*, double> optional[] = {
      {"traffic_bytes", op.traffic_bytes},
      {"measured_time_s", op.measured_time_s},
      {"measured_backward_time_s", op.measured_backward_time_s}};
  for (const auto& [field, value] : optional)
    if (!std::isfinite(value))
      throw ArgumentError("{}: {} must be finite, got {}", owner, field, value);
  check_bytes(owner, "extra_parameter_bytes", op.extra_parameter_bytes);
  check_bytes(owner, "persistent_bytes", op.persistent_bytes);
  check_bytes(owner, "workspace_bytes", op.workspace_bytes);
  check_parameters(owner, op);
}

void check_names(const Operator& op) {
  if (op.name.empty()) throw ArgumentError("an operator needs a name");
  check_utf8("operator", op.name);
  check_utf8("operator type", op.type);
  for (const auto& parameter : op.parameters) check_utf8("parameter", parameter.name);
}

/// The size by the shape. Throws LimitError for more than 2^50 elements.
int64_t shaped_bytes(const Tensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : tensor.shape) {
    if (extent < 0)
      throw ArgumentError("tensor '{}': extent {} is negative", tensor.name, extent);
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > kMaxBytes)
      throw LimitError("tensor '{}' has more than 2^50 elements", tensor.name);
  }
  return elements * dtype_bytes(tensor.dtype);
}

/// Afterwards sums over a graph fit 64 bits.
void check_total_bytes(const std::string& graph, const std::vector<Operator>& operators,
                       const std::vector<Tensor>& tensors) {
  double total = 0;
  for (const auto& tensor : tensors) total += static_cast<double>(tensor.bytes);
  for (const auto& op : operators)
    total += static_cast<double>(op.parameter_bytes() + op.persistent_bytes + op.workspace_bytes);
  if (total > 0x1p60)
    throw LimitError("graph '{}': its tensors and weights have more than 2^60 bytes", graph);
}

/// [entry, of `count`]: its place in an order; -1: it has none.
std::vector<int32_t> places_in(const std::vector<int32_t>& order, size_t count) {
  std::vector<int32_t> place(count, -1);
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int32_t>(i);
  return place;
}

/// Puts entries into this order, and drops those that are not in it. Reserves space for more, which passes add.
template <class T>
void put_in_order(std::vector<T>& entries, const std::vector<int32_t>& order) {
  bool same = order.size() == entries.size();
  for (size_t i = 0; i < order.size() && same; ++i) same = at(order[i]) == i;
  if (same) return;
  std::vector<T> ordered;
  ordered.reserve(order.size() + order.size() / 8);
  for (const int32_t number : order) ordered.push_back(std::move(entries[at(number)]));
  entries = std::move(ordered);
}

}  // namespace

thread_local bool Nameless::on_ = false;

std::string layer_and_parts(std::string_view name) {
  const auto layer = std::min(name.find_first_of("/@"), name.size());
  std::string kept(name.substr(0, layer));
  for (size_t begin = name.find('@', layer), end = 0; begin < name.size(); begin = name.find('@', end)) {
    end = std::min(name.find_first_not_of("0123456789", begin + 1), name.size());
    kept.append(name.substr(begin, end - begin));
  }
  return kept;
}

std::span<const int32_t> Graph::unit(int32_t unit) const {
  const auto u = static_cast<size_t>(unit);
  const auto first = static_cast<size_t>(unit_offsets_[u]);
  return {unit_members_.data() + first, static_cast<size_t>(unit_offsets_[u + 1]) - first};
}

Graph Graph::with_stated_times(std::vector<StatedTimes> times) const {
  Graph copy = *this;
  for (size_t op = 0; op < copy.operators_.size(); ++op)
    copy.operators_[op].stated = times.empty() ? nullptr : std::move(times.at(op));
  return copy;
}

int64_t Graph::parameter_bytes() const {
  int64_t total = 0;
  for (const auto& op : operators_) total += op.parameter_bytes();
  return total;
}

int64_t Graph::parameter_count() const {
  int64_t total = 0;
  for (const auto& op : operators_) total += op.parameter_count();
  return total;
}

int64_t Graph::active_parameter_count() const {
  int64_t total = 0;
  for (const auto& op : operators_) {
    const int64_t experts = integer_attribute(op.attributes, "experts", 0);
    const int64_t chosen = integer_attribute(op.attributes, "experts_per_token", experts);
    const int64_t count = op.parameter_count();
    total += experts > chosen && chosen >= 0 ? count / experts * chosen : count;
  }
  return total;
}

double Graph::flops() const {
  double total = 0;
  for (const auto& op : operators_) total += op.flops;
  return total;
}

bool Graph::has_backward() const {
  return std::any_of(operators_.begin(), operators_.end(),
                     [](const Operator& op) { return op.phase != Phase::forward; });
}

int32_t Graph::find(std::string_view name) const {
  for (size_t i = 0; i < operators_.size(); ++i)
    if (operators_[i].name == name) return static_cast<int32_t>(i);
  return -1;
}

/// The slot with an operator of that name, or a free one for it.
const GraphBuilder::Names::Slot& GraphBuilder::Names::slot(
    std::string_view name, uint32_t hash, const std::vector<Operator>& operators) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; true; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.op < 0 || (slot.hash == hash && operators[slot.op].name == name)) return slot;
  }
}

int32_t GraphBuilder::Names::find(std::string_view name,
                                  const std::vector<Operator>& operators) const {
  if (slots_.empty()) return -1;
  return slot(name, static_cast<uint32_t>(std::hash<std::string_view>()(name)), operators).op;
}

bool GraphBuilder::Names::add(std::string_view name, int32_t op, const std::vector<Operator>& operators) {
  if (2 * used_ >= slots_.size()) grow();
  const auto hash = static_cast<uint32_t>(std::hash<std::string_view>()(name));
  auto& free = const_cast<Slot&>(slot(name, hash, operators));
  if (free.op >= 0) return false;
  free = {hash, op};
  ++used_;
  return true;
}

void GraphBuilder::Names::grow() {
  std::vector<Slot> before(std::max<size_t>(16, 2 * slots_.size()));
  before.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.op < 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].op >= 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

GraphBuilder::GraphBuilder(Graph graph)
    : name_(std::move(graph.name_)),
      operators_(std::move(graph.operators_)),
      tensors_(std::move(graph.tensors_)),
      collectives_(std::move(graph.collectives_)) {
  reserve(operators_.size() + operators_.size() / 8, tensors_.size() + tensors_.size() / 8);
  for (const auto& op : operators_) unit_parent_.push_back(graph.unit(op.unit)[0]);
  if (Nameless::on()) return;
  for (int32_t op = 0; op < operator_count(); ++op) names_.add(operators_[op].name, op, operators_);
  for (const auto& collective : collectives_) collective_names_.insert(collective.name);
}

GraphBuilder::~GraphBuilder() {
  if (stop_flag() && std::uncaught_exceptions() > 0)
    free_aside(std::make_unique<GraphBuilder>(std::move(*this)));
}

int32_t GraphBuilder::add_operator(Operator op) {
  const auto id = operator_count();
  if (id % 1024 == 0) poll_stop();
  const bool named = !Nameless::on();
  if (named) check_names(op);
  if (named) check_costs(op);
  for (const int32_t tensor : op.inputs) check_read(op, tensor);
  if (named && !names_.add(op.name, id, operators_))
    throw ArgumentError("operator '{}' is already in graph '{}'", op.name, name_);
  op.outputs.clear();
  op.collective = -1;
  operators_.push_back(std::move(op));
  unit_parent_.push_back(id);
  return id;
}

void GraphBuilder::reserve(size_t operators, size_t tensors) {
  operators_.reserve(operators);
  unit_parent_.reserve(operators);
  tensors_.reserve(tensors);
}

int32_t GraphBuilder::add_output(int32_t op, Tensor tensor) {
  if (op < 0 || op >= operator_count())
    throw ArgumentError("add_output: no operator number {}", op);
  auto& owner = operators_[op];
  const bool named = !Nameless::on();
  if (named && tensor.name.empty())
    tensor.name = owner.name + ':' + std::to_string(owner.outputs.size());
  else if (named)
    check_utf8("tensor", tensor.name);
  find_bytes(tensor);
  const auto id = tensor_count();
  tensor.producer = op;
  tensors_.push_back(std::move(tensor));
  owner.outputs.push_back(id);
  return id;
}

void GraphBuilder::find_bytes(Tensor& tensor) {
  if (!tensor.shape.empty()) tensor.bytes = shaped_bytes(tensor);
  if (tensor.bytes < 0 || tensor.bytes > kMaxBytes)
    check_bytes(fmt::format("tensor '{}'", tensor.name), "bytes", tensor.bytes);
}

void GraphBuilder::replace(int32_t id, Tensor tensor) {
  find_bytes(tensor);
  tensor.producer = tensors_[id].producer;
  tensors_[id] = std::move(tensor);
}

void GraphBuilder::read(int32_t op, int32_t tensor) {
  if (op < 0 || op >= operator_count())
    throw ArgumentError("read: no operator number {}", op);
  check_read(operators_[op], tensor);
  operators_[op].inputs.push_back(tensor);
}

void GraphBuilder::rename(int32_t op, std::string name) {
  operators_[op].name = std::move(name);
  if (!Nameless::on()) names_.add(operators_[op].name, op, operators_);
}

void GraphBuilder::move_output(int32_t tensor, int32_t op) {
  auto& before = operators_[tensors_[tensor].producer].outputs;
  const auto* const found = std::find(before.begin(), before.end(), tensor);
  before.erase(found, found + 1);
  tensors_[tensor].producer = op;
  operators_[op].outputs.push_back(tensor);
}

void GraphBuilder::check_read(const Operator& op, int32_t tensor) const {
  if (tensor < 0 || tensor >= tensor_count())
    throw ArgumentError("operator '{}' reads tensor number {}, which does not exist", op.name, tensor);
}

int32_t GraphBuilder::find(std::string_view name) const {
  return names_.find(name, operators_);
}

void GraphBuilder::add_collective(Collective collective) {
  const bool named = !Nameless::on();
  if (named && collective.name.empty()) throw ArgumentError("a collective needs a name");
  if (named) check_utf8("collective", collective.name);
  const auto owner = [&] { return fmt::format("collective '{}'", collective.name); };
  if (named && collective_names_.contains(collective.name))
    throw ArgumentError("{} is already in graph '{}'", owner(), name_);
  if (collective.bytes < 0 || collective.bytes > kMaxBytes)
    check_bytes(owner(), "bytes", collective.bytes);
  if (collective.members.empty()) throw ArgumentError(owner() + " has no members");
  for (const int32_t member : collective.members)
    if (member < 0 || member >= operator_count())
      throw ArgumentError("{}: no operator number {}", owner(), member);
  auto& members = collective.members;
  std::sort(members.begin(), members.end());
  if (const auto twice = std::adjacent_find(members.begin(), members.end()); twice != members.end())
    throw ArgumentError("{}: operator '{}' is named twice", owner(), op(*twice).name);
  const auto& first = op(members[0]);
  for (const int32_t member : members) {
    const auto& other = op(member);
    if (other.collective >= 0)
      throw ArgumentError("{}: operator '{}' is a member of collective '{}'", owner(), other.name,
                          collectives_[other.collective].name);
    if (other.phase != first.phase)
      throw ArgumentError("{}: expected operators of one phase, got '{}' of phase {} and '{}' of phase {}", owner(),
                          first.name, choice_name(first.phase), other.name, choice_name(other.phase));
  }
  for (const int32_t member : members)
    op(member).collective = static_cast<int32_t>(collectives_.size());
  if (named) collective_names_.insert(collective.name);
  collectives_.push_back(std::move(collective));
}

std::vector<int32_t> GraphBuilder::order_of_addition() const {
  std::vector<int32_t> order;
  order.reserve(operators_.size());
  auto put = put_before_;
  std::stable_sort(put.begin(), put.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<bool> moved(operators_.size(), false);
  for (const auto& [position, op] : put) moved[op] = true;
  auto next = std::find_if(put.begin(), put.end(), [](auto& one) { return one.first != kNowhere; });
  for (int32_t op = 0; op < operator_count(); ++op) {
    for (; next != put.end() && next->first == op; ++next) order.push_back(next->second);
    if (!moved[op]) order.push_back(op);
  }
  return order;
}

/// The order of addition where dependencies allow.
std::vector<int32_t> GraphBuilder::topological_order() const {
  auto added = order_of_addition();
  const auto place = places_in(added, operators_.size());
  std::vector<Arrow> arrows;  // between places
  arrows.reserve(tensors_.size());
  bool ordered = true;
  for (size_t i = 0; i < added.size(); ++i)
    for (const int32_t tensor : operators_[added[i]].inputs) {
      arrows.emplace_back(place[tensors_[tensor].producer], static_cast<int32_t>(i));
      if (arrows.back().first < 0)
        throw ArgumentError("operator '{}' reads '{}', which is not in the subgraph", operators_[added[i]].name,
                            tensors_[tensor].name);
      ordered = ordered && arrows.back().first < arrows.back().second;
    }
  if (ordered) return added;
  const auto count = static_cast<int32_t>(added.size());
  auto order = stable_order(count, arrows);
  if (order.size() < added.size())
    throw ArgumentError(
        fmt::format("graph '{}' has a cycle: {}", name_,
                    cycle_text(arrows, find_cycle(count, arrows),
                               [&](int32_t at_place) { return operators_[added[at_place]].name; })));
  for (int32_t& op : order) op = added[op];
  return order;
}

void GraphBuilder::check_forward() const {
  for (const auto& op : operators_)
    if (op.forward >= operator_count())
      throw ArgumentError("operator '{}': its forward operator, number {}, is missing", op.name, op.forward);
}

int32_t GraphBuilder::renumber(const std::vector<int32_t>& order, Graph& graph) {
  const auto n = operators_.size();
  const auto new_op = places_in(order, n);
  std::vector<int32_t> new_tensor(tensors_.size(), -1), tensor_order, unit_number(n, -1);
  tensor_order.reserve(tensors_.size());
  int32_t units = 0;
  for (const int32_t old : order) {
    auto& number = unit_number[unit_root(old)];
    if (number < 0) number = units++;
    auto& op = operators_[old];
    op.unit = number;
    if (op.forward >= 0) op.forward = new_op[op.forward];
    for (int32_t& output : op.outputs) {
      tensors_[output].producer = new_op[old];
      tensor_order.push_back(output);
      output = new_tensor[output] = static_cast<int32_t>(tensor_order.size()) - 1;
    }
    for (int32_t& input : op.inputs) input = new_tensor[input];
  }
  renumber_collectives(new_op, graph);
  names_.clear();
  put_in_order(operators_, order);
  put_in_order(tensors_, tensor_order);
  graph.operators_ = std::move(operators_);
  graph.tensors_ = std::move(tensors_);
  return units;
}

void GraphBuilder::renumber_collectives(const std::vector<int32_t>& new_op, Graph& graph) {
  for (auto& collective : collectives_) {
    for (int32_t& member : collective.members) member = new_op[member];
    std::sort(collective.members.begin(), collective.members.end());
  }
  graph.collectives_ = std::move(collectives_);
}

/// One edge per distinct (source, target, tensor), and the depth of every operator.
void GraphBuilder::index_edges(Graph& graph) {
  const auto n = graph.operators_.size();
  std::vector<size_t> end(n + 1, 0);  // end of each source's edges
  for (const auto& op : graph.operators_)
    for (const int32_t tensor : op.inputs) ++end[at(graph.tensor(tensor).producer) + 1];
  std::partial_sum(end.begin(), end.end(), end.begin());
  std::vector<std::pair<int32_t, int32_t>> read(end.back());  // target, tensor
  for (size_t i = 0; i < n; ++i)
    for (const int32_t tensor : graph.operators_[i].inputs)
      read[end[graph.tensor(tensor).producer]++] = {static_cast<int32_t>(i), tensor};

  std::vector<std::pair<int32_t, int32_t>> edges;
  std::vector<EdgeTensor> labels;
  edges.reserve(read.size());
  labels.reserve(read.size());
  graph.depth_.assign(n, 0);
  for (size_t source = 0, first = 0; source < n; first = end[source++]) {
    const auto begin = read.begin() + static_cast<std::ptrdiff_t>(first);
    const auto behind = read.begin() + static_cast<std::ptrdiff_t>(end[source]);
    if (!std::is_sorted(begin, behind)) std::sort(begin, behind);
    for (auto edge = begin; edge != behind; ++edge) {
      if (edge != begin && *edge == *(edge - 1)) continue;
      edges.emplace_back(static_cast<int32_t>(source), edge->first);
      labels.push_back({edge->second});
      auto& depth = graph.depth_[edge->first];
      depth = std::max(depth, graph.depth_[source] + 1);
    }
  }
  graph.csr_ = CsrGraph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                        labels.begin(), static_cast<int32_t>(n));
}

void GraphBuilder::index_units(int32_t units, Graph& graph) {
  const auto n = graph.operators_.size();
  auto& offsets = graph.unit_offsets_;
  offsets.assign(static_cast<size_t>(units) + 1, 0);
  graph.unit_of_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    graph.unit_of_[i] = graph.operators_[i].unit;
    ++offsets[static_cast<size_t>(graph.unit_of_[i]) + 1];
  }
  for (size_t u = 1; u < offsets.size(); ++u) offsets[u] += offsets[u - 1];
  graph.unit_members_.resize(n);
  auto cursor = offsets;
  for (size_t i = 0; i < n; ++i) {
    auto& slot = cursor[graph.unit_of_[i]];
    graph.unit_members_[slot++] = static_cast<int32_t>(i);
  }
}

/// Default traffic: everything read and written once, weights included; for gathering operators,
/// the bytes that are written.
void GraphBuilder::default_traffic(Graph& graph) {
  for (auto& op : graph.operators_) {
    if (op.traffic_bytes >= 0) continue;
    double bytes = static_cast<double>(op.parameter_bytes());
    if (operator_rule(op.type).gathers && op.phase == Phase::forward) {
      bytes = 0;
      for (const int32_t tensor : op.outputs)
        bytes += 2 * static_cast<double>(graph.tensor(tensor).bytes);
      op.traffic_bytes = bytes;
      continue;
    }
    for (const auto* tensors : {&op.inputs, &op.outputs})
      for (const int32_t tensor : *tensors)
        bytes += static_cast<double>(graph.tensor(tensor).bytes);
    op.traffic_bytes = bytes;
  }
}

std::vector<Collective> GraphBuilder::take_collectives() {
  for (auto& op : operators_) op.collective = -1;
  collective_names_.clear();
  return std::exchange(collectives_, {});
}

DerivedGraph GraphBuilder::derive(std::span<const int32_t> added) {
  DerivedGraph result;
  const auto before = operators_.size() - added.size();
  result.graph = build(&result.origin);
  for (int32_t& op : result.origin)
    if (at(op) >= before) op = added[at(op) - before];
  return result;
}

Graph GraphBuilder::build(std::vector<int32_t>* numbers) {
  if (operators_.size() > kMaxOperators)
    throw LimitError("graph '{}' has {} operators, more than {}", name_, operators_.size(), kMaxOperators);
  check_forward();
  check_total_bytes(name_, operators_, tensors_);
  auto order = topological_order();
  if (order.empty()) throw ArgumentError("graph '{}' has no operators", name_);
  poll_stop();
  const bool joined = !Nameless::on() &&
                      std::any_of(collectives_.begin(), collectives_.end(),
                                  [](const Collective& c) { return c.members.size() > 1; });
  if (joined) check_deadlock(name_, operators_, tensors_, collectives_);
  Graph graph;
  const AsideOnStop aside(graph);
  graph.name_ = to_utf8(name_);  // names from files may have any bytes
  poll_stop();
  const int32_t units = renumber(order, graph);
  poll_stop();
  index_edges(graph);
  poll_stop();
  index_units(units, graph);
  default_traffic(graph);
  if (!Nameless::on()) graph.fingerprint_ = fingerprint_of(graph);
  if (numbers) *numbers = std::move(order);
  *this = GraphBuilder(name_);
  return graph;
}

}  // namespace trinity
