"""Makes the files of this folder: small networks of many kinds, exported by PyTorch without weights.

    python export.py OUT_DIR [NAME ...]

Networks are built from configurations with random weights; nothing is downloaded. An initializer of
more than 1024 bytes keeps name, dims and data_type only. facts.json says what PyTorch knows of each
network and what is in the file; README.md names the versions. The width is 96 because the exporter
copies tied or sliced weights of up to 8192 elements, which it does not at real size.
"""
import collections
import dataclasses
import json
import math
import os
import sys
import tempfile

import onnx
import torch
import torchvision
import transformers
from torch import nn
from torch.backends import mha, mkldnn
from torch.export import Dim
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

STRIP_ABOVE_BYTES = 1024


@dataclasses.dataclass
class Case:
    """One export. `dynamic` is dynamic_shapes, or dynamic_axes for the old exporter (dynamo=False)."""
    model: nn.Module
    args: tuple
    kwargs: dict | None = None
    dynamic: object = None
    names: list | None = None
    opset: int = 18
    dynamo: bool = True
    optimize: bool = True
    weights: str = "stripped"  # or "external": references to a deleted file, or "inside"
    fresh: bool = False  # keep PyTorch's initial values, where every LayerNorm holds the same numbers


def randomize(model):
    """Different numbers in every parameter, as after training: the exporter merges equal tensors."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.02)
        for name, buffer in model.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                buffer.uniform_(0.5, 1.5)


def export(case, path):
    """Writes the file as a user would; gives it without and with the weights of its external file."""
    options = dict(kwargs=case.kwargs, opset_version=case.opset, input_names=case.names, verbose=False)
    if case.dynamo:
        program = torch.onnx.export(case.model, case.args, dynamo=True, dynamic_shapes=case.dynamic,
                                    optimize=case.optimize, **options)
        program.save(path, external_data=case.weights == "external")
    else:
        torch.onnx.export(case.model, case.args, path, dynamo=False, dynamic_axes=case.dynamic, **options)
    return onnx.load(path, load_external_data=False), onnx.load(path)


def subgraphs(graph):
    """The graph and every graph inside its If, Loop and Scan nodes."""
    yield graph
    for attribute in (a for node in graph.node for a in node.attribute if a.HasField("g")):
        yield from subgraphs(attribute.g)


def strip_weights(model):
    """Drops the data of large tensors, of initializers and of Constant nodes."""
    for graph in subgraphs(model.graph):
        attributes = (a for node in graph.node if node.op_type == "Constant" for a in node.attribute)
        for tensor in [*graph.initializer, *(a.t for a in attributes if a.HasField("t"))]:
            item_bytes = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
            if math.prod(tensor.dims) * item_bytes > STRIP_ABOVE_BYTES:
                bare = onnx.TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
                tensor.CopyFrom(bare)


def strip_text(model):
    """Drops metadata and documentation: stack traces with the paths of the exporting machine."""
    for graph in subgraphs(model.graph):
        values = [*graph.input, *graph.output, *graph.value_info]
        for part in [model, graph, *graph.node, *graph.initializer, *values]:
            part.ClearField("metadata_props")
            part.ClearField("doc_string")


def count_flops(case):
    """FLOPs of one forward pass, 2 per multiply-add; attention and RNNs as plain matrix products."""
    mha.set_fastpath_enabled(False)
    with sdpa_kernel(SDPBackend.MATH), mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counter:
        case.model(*case.args, **(case.kwargs or {}))
    return counter.get_total_flops()


def shapes(values):
    return {v.name: [dim.dim_param or dim.dim_value for dim in v.type.tensor_type.shape.dim] for v in values}


def file_facts(model):
    graphs = list(subgraphs(model.graph))
    tensors = [tensor for graph in graphs for tensor in graph.initializer]
    readers = collections.Counter(name for graph in graphs for node in graph.node for name in node.input)
    types = sorted(collections.Counter(node.op_type for graph in graphs for node in graph.node).items())
    return {
        "opset": {entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        "ir_version": model.ir_version, "nodes": len(model.graph.node),
        "nodes_in_subgraphs": sum(len(graph.node) for graph in graphs[1:]),
        "node_types": dict(types),
        "inputs": shapes(model.graph.input),
        "outputs": shapes(model.graph.output),
        "initializers": len(tensors),
        "initializer_elements": sum(math.prod(tensor.dims) for tensor in tensors),
        "shared_initializers": {t.name: readers[t.name] for t in tensors if readers[t.name] > 1},
    }


def torch_facts(case):
    return {
        "exporter": f"torch.onnx.export(dynamo={case.dynamo})",
        "parameters": sum(parameter.numel() for parameter in case.model.parameters()),
        "float_buffers": sum(b.numel() for b in case.model.buffers() if b.is_floating_point()),
        "macs": count_flops(case) // 2,
    }


def make(name, case, out_dir, keep_text=False):
    """Exports one network into out_dir; gives its facts and the model with its weights."""
    case.model.eval()
    if not case.fresh:
        randomize(case.model)
    with torch.no_grad(), tempfile.TemporaryDirectory() as scratch:
        written, full = export(case, os.path.join(scratch, name + ".onnx"))
        facts = torch_facts(case) | file_facts(full)
    model = onnx.ModelProto()
    model.CopyFrom(written if case.weights == "external" else full)
    if case.weights == "stripped":
        strip_weights(model)
    if not keep_text:
        strip_text(model)
    onnx.save(model, os.path.join(out_dir, name + ".onnx"))
    return facts, full


class UNet(nn.Module):
    """Ronneberger et al. 2015, three levels: one up-convolution, one bilinear interpolation."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([self.pair(3, 8), self.pair(8, 16), self.pair(16, 32)])
        self.grow, self.up = nn.ConvTranspose2d(32, 16, 2, stride=2), self.pair(32, 16)
        self.last, self.head = self.pair(24, 8), nn.Conv2d(8, 2, 1)

    @staticmethod
    def pair(inputs, outputs):
        return nn.Sequential(*(layer for channels in (inputs, outputs) for layer in (
            nn.Conv2d(channels, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU())))

    def forward(self, image):
        top = self.down[0](image)
        middle = self.down[1](nn.functional.max_pool2d(top, 2))
        bottom = self.down[2](nn.functional.max_pool2d(middle, 2))
        middle = self.up(torch.cat([middle, self.grow(bottom)], dim=1))
        grown = nn.functional.interpolate(middle, scale_factor=2, mode="bilinear")
        return self.head(self.last(torch.cat([top, grown], dim=1)))


class RecurrentLanguageModel(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embedding, self.head = nn.Embedding(100, 96), nn.Linear(96, 100)
        self.recurrent = cell(96, 96, num_layers=2, batch_first=True)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.recurrent(self.embedding(tokens))[0])


class Branches(nn.Module):
    """Exported as an If whose branches read weights of the graph around them."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 10)

    def forward(self, value):
        return self.head(torch.cond(value.sum() > 0, self.left, lambda v: self.right(v).tanh(), (value,)))


def networks():
    vision, image = torchvision.models, (torch.randn(2, 3, 32, 32),)
    ids = torch.randint(0, 100, (2, 8))
    text = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    open_text = {name: {0: Dim("batch"), 1: Dim("sequence", min=2, max=64)} for name in text}
    side = 4 * Dim("side", min=2, max=64)
    common = dict(vocab_size=100, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                  bos_token_id=0, eos_token_id=1, pad_token_id=0)
    narrow = dict(common, num_key_value_heads=2, use_cache=False)
    block = vision.mobilenetv3.InvertedResidualConfig
    blocks = [block(16, 3, 16, 16, False, "RE", 1, 1, 1), block(16, 5, 32, 24, True, "HS", 2, 1, 1),
              block(24, 5, 64, 24, True, "HS", 1, 1, 1)]
    bert = transformers.BertConfig(**common, max_position_embeddings=64)
    gpt2 = transformers.GPT2Config(**common, n_positions=128, use_cache=False)
    t5 = transformers.T5Config(vocab_size=100, d_model=96, d_kv=24, d_ff=128, num_layers=1, num_heads=4)
    mixtral = transformers.MixtralForCausalLM(transformers.MixtralConfig(**narrow, num_local_experts=4))
    mixtral.set_experts_implementation("batched_mm")
    return {
        "resnet_torchscript": Case(vision.resnet.ResNet(vision.resnet.Bottleneck, [1, 1, 1, 1], 10), image,
                                   dynamo=False, names=["image"], dynamic={"image": {0: "batch"}}, fresh=True),
        "densenet": Case(vision.DenseNet(8, (2, 3), 16, num_classes=10), image),
        "mobilenet_v3": Case(vision.MobileNetV3(blocks, last_channel=64, num_classes=10), image),
        "unet": Case(UNet(), image, dynamic={"image": {0: Dim("batch"), 2: side, 3: side}}),
        "lstm": Case(RecurrentLanguageModel(nn.LSTM), (ids,)),
        "gru_torchscript": Case(RecurrentLanguageModel(nn.GRU), (ids,), dynamo=False, names=["tokens"],
                                dynamic={"tokens": {0: "batch", 1: "sequence"}}),
        "bert": Case(transformers.BertForMaskedLM(bert), (), text, open_text),
        "gpt2_external": Case(transformers.GPT2LMHeadModel(gpt2), (), text, opset=23, weights="external"),
        "llama": Case(transformers.LlamaForCausalLM(transformers.LlamaConfig(**narrow)), (), text, open_text),
        "t5": Case(transformers.T5ForConditionalGeneration(t5), (), dict(
            input_ids=ids, decoder_input_ids=ids[:, :6], use_cache=False)),
        "vit": Case(vision.VisionTransformer(32, 8, 2, 4, 96, 128, num_classes=10), image),
        "mixtral": Case(mixtral, (), text),
        "branches": Case(Branches(), (torch.randn(2, 16),), weights="inside"),
    }


def main(out_dir, *names):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    facts = {}
    for name, case in networks().items():
        if not names or name in names:
            facts[name], _ = make(name, case, out_dir)
            facts[name]["file_bytes"] = os.path.getsize(os.path.join(out_dir, name + ".onnx"))
    facts["versions"] = {module.__name__: module.__version__ for module in (torch, torchvision, transformers, onnx)}
    with open(os.path.join(out_dir, "facts.json"), "w") as file:
        json.dump(facts, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
