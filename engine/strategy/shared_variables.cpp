#include "strategy/shared_variables.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "base/index.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

/// A variable with the operators that train it.
struct Shared {
  int32_t variable = -1, sum = -1, gradient = -1, update = -1;
  std::vector<int32_t> devices;                   ///< its own first
  std::map<int32_t, std::vector<int32_t>> given;  ///< tensors of its gradient, by device
  std::map<int32_t, int32_t> copy;                ///< of the variable, by device
  std::map<int32_t, int32_t> reader;              ///< by device
  std::map<int32_t, int32_t> joins;  ///< [device]: reduces its gradient over parts
  std::map<int32_t, int32_t> bucket;  ///< [device]: the member of a bucket that replaces it
};

class Sharing {
 public:
  Sharing(const LoweredGraph& made, int64_t bucket_bytes, bool scatters)
      : made_(made),
        graph_(made.graph),
        bucket_bytes_(bucket_bytes),
        scatters_(scatters),
        builder_(std::string()),
        part_of_(at(graph_.operator_count()), -1),
        added_bytes_(graph_.collectives().size(), 0),
        replaced_(graph_.collectives().size(), false) {
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (is_variable(graph_.op(op)) && !graph_.op(op).outputs.empty()) find(op);
    find_joins();
  }

  bool empty() const { return shared_.empty(); }

  /// Everything keeps its place in the order of the graph: later numbers are later work.
  LoweredGraph run() {
    builder_ = GraphBuilder(graph_);
    roles_ = made_.roles;
    const auto collectives = builder_.take_collectives();
    for (auto& shared : shared_)
      for (size_t k = 0; k < shared.devices.size(); ++k) add_copy(shared, shared.variable, k);
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (part_of_[op] < 0)
        for (int32_t& input : builder_.op(op).inputs) input = tensor_for(input, device(op));
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (part_of_[op] >= 0 && op == shared_[part_of_[op]].update) add_training(shared_[part_of_[op]]);
    for (size_t c = 0; c < collectives.size(); ++c) {
      if (replaced_[c]) continue;
      Collective copy = collectives[c];
      copy.bytes += added_bytes_[c];
      builder_.add_collective(std::move(copy));
    }
    LoweredGraph result;
    result.lanes = made_.lanes;
    std::vector<int32_t> numbers;
    result.graph = builder_.build(&numbers);
    result.roles.reserve(numbers.size());
    for (const int32_t number : numbers) result.roles.push_back(roles_[number]);
    return result;
  }

 private:
  int32_t device(int32_t op) const { return made_.device_of(op); }

  /// Finds the readers and the training of a variable; keeps it if every device that reads it has a
  /// gradient.
  void find(int32_t variable) {
    Shared shared{variable, -1, -1, -1, {device(variable)}, {}, {}, {}, {}, {}};
    shared.reader[device(variable)] = variable;
    for (int32_t op = variable + 1; op < graph_.operator_count(); ++op) {
      if (graph_.op(op).forward != variable) continue;
      if (graph_.op(op).phase == Phase::update)
        shared.update = op;
      else
        (graph_.op(op).type == "Sum" ? shared.sum : shared.gradient) = op;
    }
    if (shared.gradient < 0 || shared.update < 0 || graph_.op(shared.gradient).inputs.size() != 1)
      return;
    std::set<int32_t> readers;
    for (const int32_t reader : graph_.readers(variable)) {
      readers.insert(device(reader));
      shared.reader.emplace(device(reader), reader);
    }
    readers.erase(device(variable));
    if (readers.empty()) return;
    shared.devices.insert(shared.devices.end(), readers.begin(), readers.end());
    const auto& parts = graph_.op(shared.sum >= 0 ? shared.sum : shared.gradient).inputs;
    for (const int32_t part : parts)
      shared.given[device(graph_.tensor(part).producer)].push_back(part);
    for (const int32_t device : shared.devices)
      if (!shared.given.contains(device)) return;
    if (shared.given.size() != shared.devices.size()) return;
    for (const int32_t op : {variable, shared.sum, shared.gradient, shared.update})
      if (op >= 0) part_of_[op] = static_cast<int32_t>(shared_.size());
    shared_.push_back(std::move(shared));
  }

  /// True if an operator is a member of a collective in the backward pass that one operator reads.
  bool joins_once(int32_t op) const {
    const auto& about = graph_.op(op);
    return about.collective >= 0 && about.phase == Phase::backward && about.inputs.size() == 1 &&
           about.outputs.size() == 1 && boost::out_degree(op, graph_.csr()) == 1;
  }

  /// All-reduces whose members each sum all gradients of one copy, over parts of the sequence: they
  /// can do so once per step, after the operator that passes on the copy's gradient, instead of for
  /// every micro-batch.
  void find_joins() {
    std::map<int32_t, std::pair<size_t, int32_t>> place;  // of members: whose copy, on which device
    for (size_t s = 0; s < shared_.size(); ++s)
      for (const auto& [device, given] : shared_[s].given)
        if (const int32_t from = graph_.tensor(given[0]).producer;
            given.size() == 1 && joins_once(from))
          place[from] = {s, device};
    for (size_t c = 0; c < graph_.collectives().size(); ++c) {
      const auto& collective = graph_.collectives()[c];
      const auto& members = collective.members;
      if (collective.kind != CollectiveKind::all_reduce ||
          !std::all_of(members.begin(), members.end(), [&](int32_t m) { return place.contains(m); }))
        continue;
      const auto* bucket = bucket_for(collective);
      replaced_[c] = bucket != nullptr;
      for (size_t i = 0; i < members.size(); ++i) {
        const auto& [s, device] = place[members[i]];
        shared_[s].joins[device] = members[i];
        if (bucket) shared_[s].bucket[device] = member_on(*bucket, device);
      }
    }
  }

  int32_t member_on(const Collective& collective, int32_t device) const {
    for (const int32_t member : collective.members)
      if (this->device(member) == device) return member;
    return -1;
  }

  /// The last bucket whose gradients are reduced on the same devices as by another collective, if
  /// the gradients of that collective fit into it.
  const Collective* bucket_for(const Collective& other) {
    for (size_t c = graph_.collectives().size(); c-- > 0;) {
      const auto& bucket = graph_.collectives()[c];
      const int32_t first = bucket.members[0];
      const bool same = bucket.kind == other.kind &&
                        bucket.axes == other.axes &&
                        bucket.members.size() == other.members.size() &&
                        graph_.op(first).phase == Phase::update &&
                        made_.roles[first].spread == made_.roles[other.members[0]].spread &&
                        std::all_of(other.members.begin(), other.members.end(), [&](int32_t op) {
                          return member_on(bucket, device(op)) >= 0;
                        });
      if (!same) continue;
      if (bucket.bytes + added_bytes_[c] + other.bytes > bucket_bytes_) return nullptr;
      added_bytes_[c] += other.bytes;
      return &bucket;
    }
    return nullptr;
  }

  std::string copy_name(int32_t op, size_t k) const {
    return k == 0 ? graph_.op(op).name : fmt::format("{}~{}", graph_.op(op).name, k);
  }

  /// Returns the k-th copy of a shared variable or of an operator that trains it, in its unit on its
  /// device. The first is the operator itself; one that trains is moved before the update.
  int32_t add_copy(Shared& shared, int32_t op, size_t k) {
    const int32_t device = shared.devices[k];
    int32_t id = op;
    if (k > 0) {
      Operator copy = graph_.op(op);
      copy.name = copy_name(op, k);
      if (copy.forward >= 0) copy.forward = shared.copy.at(device);
      id = builder_.add_operator(std::move(copy));
      for (const int32_t output : graph_.op(op).outputs) builder_.add_output(id, graph_.tensor(output));
      roles_.push_back(made_.roles[op]);
    }
    roles_[id].device = device;
    roles_[id].stage = made_.roles[shared.reader.at(device)].stage;
    if (op == shared.variable)
      shared.copy[device] = id;
    else
      builder_.op(id).inputs.clear();
    if (op == shared.variable && k > 0) builder_.put_before(op + 1, id);
    if (op != shared.variable && id != shared.update) builder_.put_before(shared.update + (k > 0 ? 1 : 0), id);
    builder_.colocate(shared.copy.at(device), id);
    return id;
  }

  int32_t written_by(int32_t op) const { return builder_.op(op).outputs[0]; }

  /// Adds the gradients of every copy, the all-reduce between them, and the updates.
  void add_training(Shared& shared) {
    Collective collective;
    collective.name = graph_.op(shared.variable).name + "/shared";
    for (size_t k = 0; k < shared.devices.size(); ++k) {
      const int32_t device = shared.devices[k];
      const auto& given = shared.given[device];
      if (k == 0 && shared.sum >= 0 && given.size() == 1) leave_out(shared.sum, shared.variable);
      const int32_t sum = given.size() > 1 ? add_copy(shared, shared.sum, k) : -1;
      const int32_t gradient = add_copy(shared, shared.gradient, k);
      const auto joins = shared.joins.find(device);
      const bool joined = joins != shared.joins.end();
      for (const int32_t part : given)
        builder_.read(sum >= 0 ? sum : gradient, joined ? graph_.op(joins->second).inputs[0] : part);
      if (sum >= 0) builder_.read(gradient, written_by(sum));
      const int32_t own = written_by(gradient);
      const int32_t sum_of_parts = joined && scatters_ ? add_joining(shared, k, own) : own;
      collective.bytes = builder_.tensor(own).bytes;
      collective.members.push_back(
          add_member(fmt::format("{}@{}", collective.name, k), shared, k, sum_of_parts));
      if (joined && !scatters_) reduced_ = add_joining(shared, k, reduced_);
      const int32_t update = add_copy(shared, shared.update, k);
      for (const int32_t input : graph_.op(shared.update).inputs) {
        const int32_t from = graph_.tensor(input).producer;
        builder_.read(update, from == shared.gradient   ? reduced_
                              : from == shared.variable ? written_by(shared.copy.at(device))
                                                        : input);
      }
    }
    builder_.add_collective(std::move(collective));
  }

  /// Removes an operator of whose unit another one is.
  void leave_out(int32_t op, int32_t other) {
    builder_.colocate(other, op);
    builder_.remove(op);
  }

  /// The reduction of a copy's gradient over parts, moved after its operator, or its bucket: the
  /// sum.
  int32_t add_joining(const Shared& shared, size_t k, int32_t gradient) {
    const int32_t device = shared.devices[k], member = shared.joins.at(device);
    if (const auto found = shared.bucket.find(device); found != shared.bucket.end()) {
      leave_out(member, graph_.tensor(graph_.op(member).inputs[0]).producer);
      builder_.read(found->second, gradient);
      return builder_.add_output(found->second, Tensor(builder_.tensor(gradient)));
    }
    builder_.put_before(shared.update + (k > 0 ? 1 : 0), member);
    builder_.op(member).phase = Phase::update;
    builder_.op(member).inputs = {gradient};
    return written_by(member);
  }

  int32_t add_member(std::string name, const Shared& shared, size_t k, int32_t gradient) {
    const int32_t device = shared.devices[k];
    Operator member;
    member.name = std::move(name);
    member.type = "AllReduce";
    member.phase = Phase::update;
    member.traffic_bytes = 0;
    member.inputs = {gradient};
    const int32_t id = builder_.add_operator(std::move(member));
    builder_.put_before(shared.update + (k > 0 ? 1 : 0), id);
    auto& role = roles_.emplace_back(made_.roles[shared.update]);
    role.device = device;
    role.stage = made_.roles[shared.reader.at(device)].stage;
    role.origin = -1;
    Tensor sum = builder_.tensor(gradient);
    sum.name.clear();
    reduced_ = builder_.add_output(id, std::move(sum));
    builder_.colocate(shared.copy.at(device), id);
    return id;
  }

  /// The tensor that a device reads: for a shared variable the tensor of its own copy.
  int32_t tensor_for(int32_t tensor, int32_t device) const {
    const int32_t from = graph_.tensor(tensor).producer;
    if (part_of_[from] < 0) return tensor;
    return written_by(shared_[part_of_[from]].copy.at(device));
  }

  const LoweredGraph& made_;
  const Graph& graph_;
  int64_t bucket_bytes_;
  bool scatters_;
  GraphBuilder builder_;
  std::vector<Shared> shared_;
  std::vector<int32_t> part_of_;  // per operator: the shared variable that it is or trains, or -1
  std::vector<int64_t> added_bytes_;  // per collective: of what is summed in it, too
  std::vector<bool> replaced_;        // per collective: whether a bucket replaces it
  std::vector<OperatorRole> roles_;  // per operator of the builder
  int32_t reduced_ = -1;          // reduction of a gradient over the devices with a part of it
};

}  // namespace

LoweredGraph share_variables(const LoweredGraph& made, int64_t bucket_bytes, bool scatters) {
  Sharing sharing(made, bucket_bytes, scatters);
  return sharing.empty() ? made : sharing.run();
}

}  // namespace trinity
