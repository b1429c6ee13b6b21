"""Writes .pt2 files of networks of tests/data/onnx/export.py for the tests, by PyTorch itself:

    python tests/clients/exported_programs.py tests/data/exported

Needs torch 2.13, torchvision and transformers (the versions that made the files stand in facts.json). Only
models/model.json of each archive is kept, without stack traces, strides and devices: weights are not read.
"""
import json
import os
import sys
import types
import zipfile

import torch
import torchvision
import transformers

NAMES = ["bert", "densenet", "llama", "lstm", "mobilenet_v3", "unet", "vit"]
KEPT_METADATA = ("nn_module_stack",)
KEPT_OF_TENSORS = ("dtype", "sizes")


def networks():
    """The networks of the ONNX files; that script imports a package which is not needed here."""
    sys.modules.setdefault("onnx", types.ModuleType("onnx"))
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "onnx")
    sys.path.insert(0, folder)
    import export
    return export.networks(), export.count_flops


def strip_nodes(value):
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        strip_nodes(inner)
    if isinstance(value, dict) and "target" in value and "metadata" in value:
        value["metadata"] = {key: value["metadata"][key] for key in KEPT_METADATA if key in value["metadata"]}


def strip(whole):
    """Drops what holds paths and is not read: stack traces (of graphs inside graphs, too), guards, strides, devices."""
    graph = whole["graph_module"]["graph"]
    strip_nodes(graph)
    tensors = graph["tensor_values"]
    for name, meta in tensors.items():
        tensors[name] = {key: meta[key] for key in KEPT_OF_TENSORS}
    for key in ("guards_code", "verifiers"):
        whole.pop(key, None)
    whole["graph_module"]["module_call_graph"] = []
    return whole


def save(name, program, folder):
    """Writes a program as NAME.pt2, stripped."""
    path = os.path.join(folder, name + ".pt2")
    torch.export.save(program, path)
    with zipfile.ZipFile(path) as archive:
        entry = f"{name}/models/model.json"
        whole = strip(json.loads(archive.read(entry)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for part, data in ((f"{name}/archive_format", "pt2"), (entry, json.dumps(whole, separators=(",", ":")))):
            archive.writestr(zipfile.ZipInfo(part), data)


def write(name, case, folder):
    case.model.eval()
    with torch.no_grad():
        save(name, torch.export.export(case.model, case.args, case.kwargs), folder)


def main(folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.makedirs(folder, exist_ok=True)
    made, count_flops = networks()
    facts = {"versions": {m.__name__: m.__version__ for m in (torch, torchvision, transformers)}}
    for name in NAMES:
        case = made[name]
        write(name, case, folder)
        with torch.no_grad():
            facts[name] = {"parameters": sum(p.numel() for p in case.model.parameters()),
                           "macs": count_flops(case) // 2,
                           "modules": sorted(n for n, m in case.model.named_modules() if n and not list(m.children()))}
    with open(os.path.join(folder, "facts.json"), "w") as file:
        json.dump(facts, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
