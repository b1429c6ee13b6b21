"""Records a training step of five small networks for the tests, by PyTorch's profiler, and exports the same modules:

    python tests/clients/traces.py tests/data/traces

Needs torch 2.13, torchvision and transformers (versions.json has those of the files). Per network: NAME.pt2 (the module
with its loss, in training mode), NAME.kineto.json (profile with with_stack, which writes the events of modules) and
NAME.et.json (ExecutionTraceObserver of the same step). Trimmed: of Kineto's events are kept the step, the optimiser,
modules, outermost operators, and in these the last operator of a sequence number, which made the autograd node; of their
arguments what says who they are. The execution trace keeps of the same records name, parent and rf_id. Of TRIES
recordings the one with the shortest step is kept. calls.json has, per network, the paths of the modules that a step calls,
in order, which hooks wrote without the profiler.
`tiny` is the module of a step of which only the export is kept.
"""
import json
import os
import sys

import torch
import torchvision
import transformers
from torch import nn
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

import exported_programs

NAMES = ["densenet", "mobilenet_v3", "unet", "llama", "vit"]
KEPT_ARGUMENTS = ("Record function id", "Sequence number", "Fwd thread id", "Python id", "Python parent id")
WARM_UP, TRIES = 5, 9


class WithLoss(nn.Module):
    """A network with its loss; what is no tensor in its output is left."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, target, *inputs):
        made = self.network(*inputs)
        made = made if isinstance(made, torch.Tensor) else made.logits
        if made.dim() == 3:
            made = made.flatten(0, 1)
        return nn.functional.cross_entropy(made, target)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)

    def forward(self, value):
        return value + self.down(self.act(self.up(value)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.head = Block(), nn.Linear(8, 4)

    def forward(self, value):
        return self.head(self.block(value))


def networks():
    vision = torchvision.models
    block = vision.mobilenetv3.InvertedResidualConfig
    blocks = [block(16, 3, 16, 16, False, "RE", 1, 1, 1), block(16, 5, 32, 24, True, "HS", 2, 1, 1),
              block(24, 5, 64, 24, True, "HS", 1, 1, 1)]
    llama = transformers.LlamaConfig(vocab_size=100, hidden_size=96, num_hidden_layers=2, num_attention_heads=4,
                                     num_key_value_heads=2, intermediate_size=128, bos_token_id=0, eos_token_id=1,
                                     pad_token_id=0, use_cache=False)
    unet = exported_programs.networks()[0]["unet"].model
    image, classes, tokens = torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,)), torch.randint(0, 100, (4, 32))
    return {
        "densenet": (vision.DenseNet(8, (2, 3), 16, num_classes=10), (classes, image)),
        "mobilenet_v3": (vision.MobileNetV3(blocks, last_channel=64, num_classes=10), (classes, image)),
        "unet": (unet, (torch.randint(0, 2, (8, 32, 32)), image)),
        "llama": (transformers.LlamaForCausalLM(llama), (torch.randint(0, 100, (128,)), tokens)),
        "vit": (vision.VisionTransformer(32, 8, 2, 4, 96, 128, num_classes=10), (classes, image)),
        "tiny": (Net(), (torch.randint(0, 4, (4,)), torch.randn(4, 8))),
    }


def record(module, inputs, base):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    observer = ExecutionTraceObserver().register_callback(base + ".et.json")
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=WARM_UP, active=1),
                 record_shapes=True, with_modules=True, with_stack=True, execution_trace_observer=observer,
                 on_trace_ready=lambda made: made.export_chrome_trace(base + ".kineto.json")) as profiler:
        for _ in range(WARM_UP + 1):
            optimizer.zero_grad()
            module(*inputs).backward()
            optimizer.step()
            profiler.step()
    observer.unregister_callback()


def step_time(base):
    with open(base + ".kineto.json") as file:
        return next(e["dur"] for e in json.load(file)["traceEvents"] if e["name"].startswith("ProfilerStep#"))


def record_quickest(module, inputs, base):
    best = None
    for number in range(TRIES):
        attempt = f"{base}.{number}"
        record(module, inputs, attempt)
        if best is None or step_time(attempt) < step_time(best):
            best = attempt
    for number in range(TRIES):
        for kind in (".kineto.json", ".et.json"):
            if f"{base}.{number}" == best:
                os.replace(best + kind, base + kind)
            else:
                os.remove(f"{base}.{number}{kind}")


def calls_of(module, inputs):
    """The paths of the modules that a step calls, in order."""
    paths = []
    hooks = [inner.register_forward_pre_hook(lambda *_, path=path: paths.append(path))
             for path, inner in module.named_modules()]
    module(*inputs)
    for hook in hooks:
        hook.remove()
    return paths


def wanted(events):
    """Outermost operators, and in them the last of each sequence number."""
    operators = sorted((e for e in events if e.get("cat") == "cpu_op"), key=lambda e: (e["tid"], e["ts"], -e["dur"]))
    kept, end, tid, last = [], 0, None, {}
    for event in operators:
        if event["tid"] != tid or event["ts"] >= end:
            kept.append(event)
            tid, end = event["tid"], event["ts"] + event["dur"]
        number = event["args"].get("Sequence number")
        if number is not None and event["args"].get("Fwd thread id") == 0:
            last[number] = event
    return {id(event) for event in [*kept, *last.values()]}


def trim(base):
    with open(base + ".kineto.json") as file:
        whole = json.load(file)
    operators = wanted(whole["traceEvents"])
    kept = []
    for event in whole["traceEvents"]:
        name, cat = event["name"], event.get("cat")
        if cat == "user_annotation" or cat == "python_function" and name.startswith("nn.Module: ") or id(event) in operators:
            event["args"] = {k: event["args"][k] for k in KEPT_ARGUMENTS if k in event["args"]}
            kept.append(event)
    whole["traceEvents"] = sorted(kept, key=lambda e: e["ts"])
    whole.update(host_name="host", traceName=os.path.basename(base) + ".kineto.json")
    with open(base + ".kineto.json", "w") as file:
        file.write(json.dumps(whole, separators=(",", ":")).replace('{"ph"', '\n{"ph"') + "\n")
    ids = {event["args"].get("Record function id") for event in kept}
    with open(base + ".et.json") as file:
        whole = json.load(file)
    nodes = []
    for node in whole["nodes"]:
        attributes = [a for a in node["attrs"] if a["name"] == "rf_id"]
        if attributes and attributes[0]["value"] in ids:
            nodes.append({"id": node["id"], "name": node["name"], "ctrl_deps": node["ctrl_deps"], "attrs": attributes})
    whole["nodes"] = nodes
    with open(base + ".et.json", "w") as file:
        file.write(json.dumps(whole, separators=(",", ":")).replace('{"id"', '\n{"id"') + "\n")


def main(folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.makedirs(folder, exist_ok=True)
    calls = {}
    for name, (network, inputs) in networks().items():
        module = WithLoss(network).train()
        base = os.path.join(folder, name)
        exported_programs.save(name, torch.export.export(module, inputs), folder)
        if name != "tiny":
            record_quickest(module, inputs, base)
            trim(base)
            calls[name] = calls_of(module, inputs)
    with open(os.path.join(folder, "calls.json"), "w") as file:
        file.write(json.dumps(calls, separators=(",", ":")).replace("],", "],\n") + "\n")
    with open(os.path.join(folder, "versions.json"), "w") as file:
        json.dump({m.__name__: m.__version__ for m in (torch, torchvision, transformers)}, file)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
