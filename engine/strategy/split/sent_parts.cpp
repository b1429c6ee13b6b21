#include "strategy/sent_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/index.h"

namespace trinity {
namespace {

class Sending {
 public:
  Sending(Lowered& made, int32_t tensor, const std::vector<bool>& whole)
      : made_(made),
        graph_(made.graph),
        parts_(tensor),
        whole_(whole),
        builder_(graph_.name()),
        cut_of_(graph_.tensors().size(), -1),
        id_(at(graph_.operator_count()), -1),
        tensor_(graph_.tensors().size(), -1),
        readers_(graph_.tensors().size()) {
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      for (const int32_t input : graph_.op(op).inputs) readers_[at(input)].push_back(op);
    find();
  }

  void run() {
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      Operator copy = graph_.op(op);
      copy.inputs.clear();
      if (copy.forward >= 0) copy.forward = id_[copy.forward];
      id_[op] = add(std::move(copy), made_.roles[op]);
      for (const int32_t output : graph_.op(op).outputs) {
        tensor_[output] = builder_.add_output(id_[op], graph_.tensor(output));
        if (cut_of_[output] >= 0) cuts_[cut_of_[output]].written += 1;
        if (cut_of_[output] >= 0 && cuts_[cut_of_[output]].written == parts_)
          add_cut(cuts_[cut_of_[output]]);
      }
    }
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      for (const int32_t input : graph_.op(op).inputs)
        builder_.read(id_[op], tensor_for(input, op));
    builder_.colocate_as(graph_, id_);
    builder_.add_collectives_of(graph_, id_);
    std::vector<int32_t> numbers;
    made_.graph = builder_.build(&numbers);
    made_.roles.clear();
    for (const int32_t number : numbers) made_.roles.push_back(roles_[number]);
  }

 private:
  /// The copies of a tensor on a group, by position, and the groups that get parts of them.
  struct Cut {
    std::vector<int32_t> tensors;
    std::set<int32_t> groups;
    int32_t written = 0;
    std::map<int32_t, std::vector<int32_t>> gathered;  // by group, by place; in the builder
  };

  int32_t group_of(int32_t op) const { return made_.device_of(op) / parts_; }
  int32_t place_of(int32_t op) const { return made_.device_of(op) % parts_; }

  /// The name of a part's whole: without the number after the last '@'.
  static std::string name_of_whole(const std::string& name) {
    const auto at_sign = name.rfind('@');
    if (at_sign == std::string::npos) return name;
    const auto end = name.find_first_not_of("0123456789", at_sign + 1);
    return name.substr(0, at_sign) + (end == std::string::npos ? "" : name.substr(end));
  }

  /// Finds the groups that read a tensor of another group; false if other devices read it.
  bool groups_reading(int32_t tensor, std::set<int32_t>& groups) const {
    const int32_t from = graph_.tensor(tensor).producer;
    for (const int32_t reader : readers_[at(tensor)]) {
      if (made_.device_of(reader) == made_.device_of(from)) continue;
      if (group_of(reader) == group_of(from) || place_of(reader) != place_of(from)) return false;
      groups.insert(group_of(reader));
    }
    return true;
  }

  bool divides(const Tensor& tensor) const {
    return tensor.shape.size() >= 2 && tensor.shape[1] % parts_ == 0;
  }

  void find() {
    std::map<std::pair<std::string, int32_t>, std::vector<int32_t>> producers;
    for (int32_t op = 0; op < graph_.operator_count(); ++op)
      if (!graph_.op(op).inputs.empty())
        producers[{name_of_whole(graph_.op(op).name), group_of(op)}].push_back(op);
    for (auto& [name, ops] : producers) {
      if (ops.size() != at(parts_)) continue;
      std::sort(ops.begin(), ops.end(),
                [&](int32_t a, int32_t b) { return place_of(a) < place_of(b); });
      bool each_place = true;
      for (size_t i = 0; i < ops.size(); ++i)
        each_place = each_place && at(place_of(ops[i])) == i &&
                     graph_.op(ops[i]).outputs.size() == graph_.op(ops[0]).outputs.size();
      if (!each_place) continue;
      for (size_t k = 0; k < graph_.op(ops[0]).outputs.size(); ++k) consider(ops, k);
    }
  }

  void consider(const std::vector<int32_t>& ops, size_t output) {
    Cut cut;
    for (size_t i = 0; i < ops.size(); ++i) {
      const int32_t tensor = graph_.op(ops[i]).outputs[output];
      std::set<int32_t> groups;
      if (!whole_[at(tensor)] || !divides(graph_.tensor(tensor)) || !groups_reading(tensor, groups))
        return;
      if (i > 0 && groups != cut.groups) return;
      cut.groups = std::move(groups);
      cut.tensors.push_back(tensor);
    }
    if (cut.groups.empty()) return;
    for (const int32_t tensor : cut.tensors)
      cut_of_[at(tensor)] = static_cast<int32_t>(cuts_.size());
    cuts_.push_back(std::move(cut));
  }

  int32_t add(Operator op, const OperatorRole& role) {
    roles_.push_back(role);
    return builder_.add_operator(std::move(op));
  }
  /// An operator that moves data, on a device, for another one.
  int32_t add_for(int32_t served, Operator op, int32_t device) {
    OperatorRole role = made_.roles[served];
    role.device = device;
    role.origin = -1;
    return add(std::move(op), role);
  }

  /// Adds the slices of all copies, and their gathers in every group.
  void add_cut(Cut& cut) {
    std::vector<int32_t> pieces;
    for (int32_t place = 0; place < parts_; ++place) pieces.push_back(add_slice(cut, place));
    for (const int32_t group : cut.groups) {
      Collective collective;
      const int32_t first = graph_.tensor(cut.tensors[0]).producer;
      collective.kind = CollectiveKind::all_gather;
      collective.name = fmt::format("{}/received{}", name_of_whole(graph_.op(first).name), group);
      collective.bytes = graph_.tensor(cut.tensors[0]).bytes;
      for (int32_t place = 0; place < parts_; ++place)
        collective.members.push_back(
            add_gather(cut, group, place, collective.name, pieces[at(place)]));
      builder_.add_collective(std::move(collective));
    }
  }

  int32_t add_slice(const Cut& cut, int32_t place) {
    const Tensor& of = graph_.tensor(cut.tensors[at(place)]);
    const int64_t rows = of.shape[1] / parts_;
    Operator slice;
    slice.name = graph_.op(of.producer).name + "/sent";
    slice.type = "Slice";
    slice.phase = graph_.op(of.producer).phase;
    slice.attributes["axes"] = std::vector<int64_t>{1};
    slice.attributes["starts"] = std::vector<int64_t>{rows * place};
    slice.attributes["ends"] = std::vector<int64_t>{rows * (place + 1)};
    slice.inputs = {tensor_[cut.tensors[at(place)]]};
    const int32_t id = add_for(of.producer, std::move(slice), made_.device_of(of.producer));
    Tensor piece = of;
    piece.name.clear();
    piece.shape.edit()[1] = rows;
    piece.bytes = of.bytes / parts_;
    builder_.op(id).traffic_bytes = 2 * static_cast<double>(piece.bytes);
    return builder_.add_output(id, std::move(piece));
  }

  int32_t add_gather(Cut& cut, int32_t group, int32_t place, const std::string& name,
                     int32_t piece) {
    const int32_t tensor = cut.tensors[at(place)];
    const Tensor& of = graph_.tensor(tensor);
    int32_t reader = -1;
    for (const int32_t one : readers_[at(tensor)])
      if (group_of(one) == group && reader < 0) reader = one;
    Operator member;
    member.name = fmt::format("{}@{}", name, place);
    member.type = "AllGather";
    member.phase = graph_.op(of.producer).phase;
    member.traffic_bytes = 0;
    std::vector<int64_t> begins(of.shape.size(), 0);
    begins[1] = of.shape[1] / parts_ * place;
    member.attributes["begins"] = std::move(begins);
    member.inputs = {piece};
    const int32_t id = add_for(reader, std::move(member), group * parts_ + place);
    Tensor whole = of;
    whole.name.clear();
    cut.gathered[group].push_back(builder_.add_output(id, std::move(whole)));
    return id;
  }

  /// A tensor as an operator reads it.
  int32_t tensor_for(int32_t tensor, int32_t reader) const {
    const int32_t cut = cut_of_[at(tensor)];
    if (cut < 0) return tensor_[tensor];
    const auto found = cuts_[at(cut)].gathered.find(group_of(reader));
    return found == cuts_[at(cut)].gathered.end() ? tensor_[tensor]
                                                  : found->second[at(place_of(reader))];
  }

  Lowered& made_;
  const Graph& graph_;
  int32_t parts_;
  const std::vector<bool>& whole_;
  GraphBuilder builder_;
  std::vector<Cut> cuts_;
  std::vector<int32_t> cut_of_;  // per tensor, or -1
  std::vector<int32_t> id_;      // in the builder
  std::vector<int32_t> tensor_;  // in the builder
  std::vector<std::vector<int32_t>> readers_;
  std::vector<OperatorRole> roles_;  // per operator of the builder
};

}  // namespace

void send_parts(Lowered& made, int32_t tensor, const std::vector<bool>& whole) {
  Sending(made, tensor, whole).run();
}

}  // namespace trinity
