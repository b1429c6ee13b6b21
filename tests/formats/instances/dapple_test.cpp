// Profiles in PipeDream's format: PipeDream's own and DAPPLE's, every published file.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "formats/instances/pipedream.h"
#include "graph/operator_types.h"
#include "graph/training.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const std::string kData = test::shared_data();

double time_s(const Graph& graph) {
  double sum = 0;
  for (const auto& op : graph.operators()) sum += op.measured_time_s + op.measured_backward_time_s;
  return sum;
}

std::string type_of(const std::string& description) {
  const auto graph =
      parse_pipedream("n -- " + description +
                          " -- forward_compute_time=1, backward_compute_time=2, activation_size=3, "
                          "parameter_size=4",
                      "x.txt", "x");
  return graph.op(0).type;
}

// Nodes and edges of PipeDream's files stand in manual/papers.md "Profiles that were published",
// times without loaders in expected.json (`total`, checked below too); the rest are counts and sums
// over the files made by another program.
struct Row {
  const char* file;
  int nodes, edges;
  double time_s;  // forward and backward, without loaders
  int64_t parameter_bytes;
  int types;  // that have a rule
};
const Row kPublished[] = {
    {"pipedream/alexnet.graph.txt", 23, 23, 0.085321, 244403360, 8},
    {"pipedream/densenet121.graph.txt", 429, 487, 0.326155, 31915424, 10},
    {"pipedream/gnmt.graph.txt", 48, 58, 0.089416, 775063808, 8},
    {"pipedream/inception_v3.graph.txt", 326, 362, 0.689038, 108645056, 11},
    {"pipedream/nasnetamobile.graph.txt", 921, 1078, 0.584284, 34343816, 12},
    {"pipedream/resnet18.graph.txt", 71, 79, 0.259742, 46758048, 10},
    {"pipedream/resnet50.graph.txt", 177, 193, 0.443419, 102228128, 10},
    {"pipedream/resnext50.graph.txt", 177, 193, 0.590793, 100115616, 10},
    {"pipedream/squeezenet1_0.graph.txt", 68, 76, 0.285366, 4993696, 9},
    {"pipedream/vgg16.graph.txt", 41, 41, 0.672535, 553430176, 8},
    {"dapple/amoeba-18-pbs-8.txt", 26, 47, 0.71781, 1914477860, 2},
    {"dapple/amoeba-6-pbs-8-complicated.txt", 20, 28, 0.212, 703372580, 4},
    {"dapple/amoeba-6-pbs-8-simplified.txt", 14, 23, 0.212, 703372580, 2},
    {"dapple/bert-24-pbs-6.txt", 29, 52, 0.515357, 1340567552, 1},
    {"dapple/gnmt-16-pbs-64.txt", 96, 122, 0.248916, 1162988352, 8},
    {"dapple/vgg-19-pbs-32.txt", 26, 25, 0.14421, 548047022, 4},
    {"dapple/xlnet-24-pbs-1.txt", 31, 103, 0.20111, 1379000000, 4},
};

}  // namespace

TEST_CASE("layer names become ONNX types; layers that differ by their number are of one type") {
  const std::pair<const char*, const char*> cases[] = {
      {"Conv2d(3, 64, kernel_size=(11, 11))", "Conv"},
      {"Conv2d_1_2", "Conv"},
      {"MaxPool2d_5", "MaxPool"},
      {"ReLU(inplace)", "Relu"},
      {"FC1", "Gemm"},
      {"Prediction", "Gemm"},
      {"Linear(in_features=1, out_features=2)", "Gemm"},
      {"Embed-Token", "Gather"},
      {"Embed-Token-Dropout", "Dropout"},
      {"Embed-Segment-one_hot", "OneHot"},
      {"softmax_loss", "SoftmaxCrossEntropyLoss"},
      {"reshape_input", "Reshape"},
      {"__getitem__(0)", "Identity"},
      {"EmuBidirLSTM(  (bidir): LSTM(1024, 1024))", "LSTM"},
      {"Input0", "Input"},
      {"layer_23", "layer"},
      {"Layer_0", "Layer"},
      {"cell_3", "cell"},
      {"cell3", "cell"},
      {"cell_stem_1", "cell_stem"},
      {"reduction_cell_0", "reduction_cell"},
      {"reduction_cell_1/1x1", "Conv"},
      {"cell_3/prev_1x1", "Conv"},
      {"cell_3/Relu_1", "Relu"},
      {"XLNET_LOSS", "XLNET_LOSS"},
      {"12", "Operator"},
  };
  for (const auto& [description, type] : cases) {
    CAPTURE(description);
    CHECK(type_of(description) == type);
  }
}

TEST_CASE("DAPPLE's habits: whole numbers, edges indented by spaces, white space at a line's end") {
  const auto graph = parse_pipedream(
      "node1 -- input_ids -- forward_compute_time=1, backward_compute_time=0, "
      "activation_size=[9216; 4], parameter_size=0 \n"
      "node2 -- layer_0 -- forward_compute_time=8.07, backward_compute_time=13.4, "
      "activation_size=12976128, parameter_size=50384896\r\n"
      "  node1 -- node2  \n"
      "   \n",
      "x.txt", "x");
  CHECK(graph.operator_count() == 2);
  CHECK(graph.edge_count() == 1);
  CHECK(graph.tensor(0).bytes == 9220);
  CHECK(graph.op(1).extra_parameter_bytes == 50384896);
}

TEST_CASE("every published profile: counts, sums and types" * test::shared) {
  for (const auto& row : kPublished) {
    CAPTURE(row.file);
    const auto graph = read_pipedream(kData + "/" + row.file);
    CHECK(graph.operator_count() == row.nodes);
    CHECK(graph.edge_count() == row.edges);
    CHECK(time_s(graph) == doctest::Approx(row.time_s).epsilon(1e-9));
    CHECK(graph.parameter_bytes() == row.parameter_bytes);
    std::set<std::string> types;
    for (const auto& op : graph.operators())
      if (has_operator_rule(op.type)) types.insert(op.type);
    CHECK(static_cast<int>(types.size()) == row.types);
    CHECK(lower_to_training(graph, {}).has_backward());
  }
}

TEST_CASE("profiles take the time that PipeDream's own optimizer finds for one machine" *
          test::shared) {
  std::set<std::string> models;
  for (const std::string folder : {"/pipedream", "/dapple"}) {
    const auto expected = nlohmann::json::parse(read_file(kData + folder + "/expected.json"));
    for (const auto& result : expected.at("results")) {
      std::string model = result.at("model");
      if (!models.insert(model).second) continue;
      if (const auto at = model.find("_compressed"); at != std::string::npos) model.resize(at);
      const auto file =
          kData + folder + "/" + model + (folder == "/dapple" ? "" : ".graph") + ".txt";
      CAPTURE(model);
      CHECK(time_s(read_pipedream(file)) ==
            doctest::Approx(result.at("total").get<double>()).epsilon(1e-6));
    }
  }
  CHECK(models.size() == 14);
}
