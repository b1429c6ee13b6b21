#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/pipedream.h"
#include "simulator/problem.h"
#include "support/build.h"

namespace trinity::test {

/// A PipeDream profile as the published simulator takes it: forward plus backward as one operator,
/// one tensor each. Times of input nodes are kept, as it keeps them. `file_order` gets the names of
/// nodes in the order of the file.
inline std::shared_ptr<const Graph> one_operator_per_node(const std::string& text,
                                                          std::vector<std::string>& file_order) {
  const auto forward = parse_pipedream(text, "profile", "profile");
  GraphMaker make("profile");
  std::map<std::string, double> input_time_s;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (text[at] == '\t') break;
    const auto line = text.substr(at, text.find('\n', at) - at);
    const auto id = line.substr(0, line.find(' '));
    file_order.push_back(id);
    const auto value = [&](const char* name) {
      return std::stod(line.substr(line.find(name) + std::string(name).size() + 1));
    };
    input_time_s[id] = (value("forward_compute_time") + value("backward_compute_time")) * 1e-3;
    if (text.find('\n', at) == std::string::npos) break;
  }
  std::map<std::string, int> tensor, op;
  // That simulator breaks ties by the text of node names.
  auto by_name = file_order;
  std::sort(by_name.begin(), by_name.end());
  for (const auto& id : by_name) {
    const auto& node = forward.op(forward.find(id));
    op[id] = make.op(id, input_time_s[id]);
    tensor[id] = make.output(op[id], forward.tensor(node.outputs[0]).bytes);
  }
  for (const auto& node : forward.operators())
    for (const int32_t input : node.inputs)
      make.read(op[node.name], tensor[forward.op(forward.tensor(input).producer).name]);
  return make.share();
}

/// The rules under which the reference figures of data/placeto-sim were made: those of
/// SimulationRules::compat(), but the step ends with the last operator, and every operator is
/// followed by a pause.
inline SimulationRules placeto_rules() {
  auto rules = SimulationRules::compat();
  rules.last_event = false;
  rules.dead_after_free = true;
  return rules;
}

/// Their cluster: equal devices whose one outgoing bus carries 7600 bytes a microsecond.
inline std::shared_ptr<const Cluster> placeto_cluster(int devices) {
  return uniform_cluster(devices, 7600e6, 0);
}

}  // namespace trinity::test
