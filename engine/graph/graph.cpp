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
#include "graph/deadlock.h"
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
    throw ArgumentError(fmt::format("{}: {} must not be negative, got {}", owner, field, bytes));
  if (bytes > kMaxBytes)
    throw LimitError(fmt::format("{}: {} must not exceed 2^50, got {}", owner, field, bytes));
}

/// Checks the bytes of weights before any unchecked multiplication.
void check_parameters(const std::string& owner, const Operator& op) {
  int64_t total = op.extra_parameter_bytes;
  for (const auto& parameter : op.parameters) {
    int64_t bytes = dtype_bytes(parameter.dtype);
    for (const int64_t extent : parameter.shape) {
      if (extent < 0)
        throw ArgumentError(fmt::format("{}: parameter '{}': extent {} is negative", owner,
                                        parameter.name, extent));
      if (__builtin_mul_overflow(bytes, extent, &bytes)) bytes = kMaxBytes + 1;
      bytes = std::min(bytes, kMaxBytes + 1);
    }
    total = std::min(total + bytes, kMaxBytes + 1);
  }
  if (total > kMaxBytes)
    throw LimitError(fmt::format("{}: its weights have more than 2^50 bytes", owner));
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
    throw ArgumentError(
        fmt::format("{}: flops must be finite and not negative, got {}", owner, op.flops));
  const std::pair<const char*, double> optional[] = {
      {"traffic_bytes", op.traffic_bytes},
      {"measured_time_s", op.measured_time_s},
      {"measured_backward_time_s", op.measured_backward_time_s}};
  for (const auto& [field, value] : optional)
    if (!std::isfinite(value))
      throw ArgumentError(fmt::format("{}: {} must be finite, got {}", owner, field, value));
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
      throw ArgumentError(fmt::format("tensor '{}': extent {} is negative", tensor.name, extent));
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > kMaxBytes)
      throw LimitError(fmt::format("tensor '{}' has more than 2^50 elements", tensor.name));
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
    throw LimitError(
        fmt::format("graph '{}': its tensors and weights have more than 2^60 bytes", graph));
}

/// True if every tensor was added before its readers.
bool in_order(const std::vector<Operator>& operators, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < operators.size(); ++i)
    for (const int32_t tensor : operators[i].inputs)
      if (at(tensors[tensor].producer) >= i) return false;
  return true;
}

/// Moves every entry to its new position in place.
template <class T>
void permute(std::vector<T>& entries, std::vector<int32_t> place) {
  for (size_t i = 0; i < entries.size(); ++i)
    while (place[i] != static_cast<int32_t>(i)) {
      const auto to = static_cast<size_t>(place[i]);
      std::swap(entries[i], entries[to]);
      std::swap(place[i], place[to]);
    }
}

}  // namespace

thread_local bool Nameless::on_ = false;

std::string layer_and_parts(std::string_view name) {
  const auto layer = std::find_if(name.begin(), name.end(),
                                  [](char c) { return c == '/' || c == '@'; });
  std::string kept(name.begin(), layer);
  bool counts = false;  // only digits follow '@'
  for (auto c = layer; c != name.end(); ++c) {
    counts = *c == '@' || (counts && *c >= '0' && *c <= '9');
    if (counts) kept += *c;
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

bool GraphBuilder::Names::add(std::string_view name, const std::vector<Operator>& operators) {
  if (2 * used_ >= slots_.size()) grow();
  const auto hash = static_cast<uint32_t>(std::hash<std::string_view>()(name));
  auto& free = const_cast<Slot&>(slot(name, hash, operators));
  if (free.op >= 0) return false;
  free = {hash, static_cast<int32_t>(operators.size())};
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
  if (named && !names_.add(op.name, operators_))
    throw ArgumentError(fmt::format("operator '{}' is already in graph '{}'", op.name, name_));
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
    throw ArgumentError(fmt::format("add_output: no operator number {}", op));
  auto& owner = operators_[op];
  const bool named = !Nameless::on();
  if (named && tensor.name.empty())
    tensor.name = owner.name + ':' + std::to_string(owner.outputs.size());
  else if (named)
    check_utf8("tensor", tensor.name);
  if (!tensor.shape.empty()) tensor.bytes = shaped_bytes(tensor);
  if (tensor.bytes < 0 || tensor.bytes > kMaxBytes)
    check_bytes(fmt::format("tensor '{}'", tensor.name), "bytes", tensor.bytes);
  const auto id = tensor_count();
  tensor.producer = op;
  tensors_.push_back(std::move(tensor));
  owner.outputs.push_back(id);
  return id;
}

void GraphBuilder::read(int32_t op, int32_t tensor) {
  if (op < 0 || op >= operator_count())
    throw ArgumentError(fmt::format("read: no operator number {}", op));
  check_read(operators_[op], tensor);
  operators_[op].inputs.push_back(tensor);
}

void GraphBuilder::check_read(const Operator& op, int32_t tensor) const {
  if (tensor < 0 || tensor >= tensor_count())
    throw ArgumentError(fmt::format("operator '{}' reads tensor number {}, which does not exist",
                                    op.name, tensor));
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
    throw ArgumentError(fmt::format("{} is already in graph '{}'", owner(), name_));
  if (collective.bytes < 0 || collective.bytes > kMaxBytes)
    check_bytes(owner(), "bytes", collective.bytes);
  if (collective.members.empty()) throw ArgumentError(owner() + " has no members");
  for (const int32_t member : collective.members)
    if (member < 0 || member >= operator_count())
      throw ArgumentError(fmt::format("{}: no operator number {}", owner(), member));
  auto& members = collective.members;
  std::sort(members.begin(), members.end());
  if (const auto twice = std::adjacent_find(members.begin(), members.end()); twice != members.end())
    throw ArgumentError(fmt::format("{}: operator '{}' is named twice", owner(), op(*twice).name));
  const auto& first = op(members[0]);
  for (const int32_t member : members) {
    const auto& other = op(member);
    if (other.collective >= 0)
      throw ArgumentError(fmt::format("{}: operator '{}' is a member of collective '{}'", owner(),
                                      other.name, collectives_[other.collective].name));
    if (other.phase != first.phase)
      throw ArgumentError(fmt::format("{}: expected operators of one phase, got '{}' of phase {} "
                                      "and '{}' of phase {}",
                                      owner(), first.name, phase_name(first.phase), other.name,
                                      phase_name(other.phase)));
  }
  for (const int32_t member : members)
    op(member).collective = static_cast<int32_t>(collectives_.size());
  if (named) collective_names_.insert(collective.name);
  collectives_.push_back(std::move(collective));
}

int32_t GraphBuilder::unit_root(int32_t op) const {
  while (unit_parent_[op] != op) op = unit_parent_[op];
  return op;
}

void GraphBuilder::colocate(int32_t a, int32_t b) {
  const auto root_of = [this](int32_t op) {  // halves the path
    while (unit_parent_[op] != op) op = unit_parent_[op] = unit_parent_[unit_parent_[op]];
    return op;
  };
  const int32_t x = root_of(a), y = root_of(b);
  const int32_t root = std::min(x, y);
  for (const int32_t op : {a, b, x, y}) unit_parent_[op] = root;
}

/// The order of addition where dependencies allow.
std::vector<int32_t> GraphBuilder::topological_order() const {
  if (in_order(operators_, tensors_)) {
    std::vector<int32_t> same(operators_.size());
    std::iota(same.begin(), same.end(), 0);
    return same;
  }
  std::vector<Arrow> arrows;
  for (size_t i = 0; i < operators_.size(); ++i)
    for (const int32_t tensor : operators_[i].inputs)
      arrows.emplace_back(tensors_[tensor].producer, static_cast<int32_t>(i));
  auto order = stable_order(operator_count(), arrows);
  if (order.size() < operators_.size())
    throw ArgumentError(
        fmt::format("graph '{}' has a cycle: {}", name_,
                    cycle_text(arrows, find_cycle(operator_count(), arrows),
                               [this](int32_t op) { return operators_[op].name; })));
  return order;
}

void GraphBuilder::check_forward() const {
  for (const auto& op : operators_)
    if (op.forward >= operator_count())
      throw ArgumentError(fmt::format("operator '{}': its forward operator, number {}, is missing",
                                      op.name, op.forward));
}

int32_t GraphBuilder::renumber(const std::vector<int32_t>& order, Graph& graph) {
  const auto n = order.size();
  std::vector<int32_t> new_op(n), new_tensor(tensors_.size()), unit_number(n, -1);
  for (size_t i = 0; i < n; ++i) new_op[order[i]] = static_cast<int32_t>(i);
  int32_t units = 0, tensors = 0;
  for (const int32_t old : order) {
    auto& number = unit_number[unit_root(old)];
    if (number < 0) number = units++;
    auto& op = operators_[old];
    op.unit = number;
    if (op.forward >= 0) op.forward = new_op[op.forward];
    for (int32_t& output : op.outputs) {
      tensors_[output].producer = new_op[old];
      output = new_tensor[output] = tensors++;
    }
    for (int32_t& input : op.inputs) input = new_tensor[input];
  }
  renumber_collectives(new_op, graph);
  names_.clear();
  permute(operators_, std::move(new_op));
  permute(tensors_, std::move(new_tensor));
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

void GraphBuilder::colocate_as(const Graph& graph, std::span<const int32_t> ids) {
  const auto id = [&](int32_t op) { return ids.empty() ? op : ids[at(op)]; };
  for (int32_t unit = 0; unit < graph.unit_count(); ++unit)
    for (const int32_t member : graph.unit(unit)) colocate(id(graph.unit(unit)[0]), id(member));
}

void GraphBuilder::add_collectives_of(const Graph& graph, std::span<const int32_t> ids) {
  for (Collective collective : graph.collectives()) {
    for (int32_t& member : collective.members) member = ids[at(member)];
    add_collective(std::move(collective));
  }
}

Graph GraphBuilder::build(std::vector<int32_t>* numbers) {
  if (operators_.empty()) throw ArgumentError(fmt::format("graph '{}' has no operators", name_));
  if (operators_.size() > kMaxOperators)
    throw LimitError(fmt::format("graph '{}' has {} operators, more than {}", name_,
                                 operators_.size(), kMaxOperators));
  check_forward();
  check_total_bytes(name_, operators_, tensors_);
  auto order = topological_order();
  poll_stop();
  const bool joined = std::any_of(collectives_.begin(), collectives_.end(),
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
