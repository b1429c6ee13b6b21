#!/usr/bin/env python3
"""Example: a PyTorch model on the devices of a placement that trinity wrote.

    python3 apply.py [placement.json] [--device NAME=DEVICE ...]

Reads a placement (see engine/formats/placement_export.h), puts every module of a small model on its
device, moves tensors where they cross from one device to another, and compares the result with the
same model on one device. `--device` renames: `--device cpu:1=cuda:0` runs the second half on a GPU,
`--device cpu:1=meta` without one (shapes and devices are then checked, values are not). Needs PyTorch
and nothing else.

For a model of your own: export it to ONNX (torch.onnx.export), read that in trinity, search a
strategy, write its placement, and call place(model, placement) as here.
"""

import argparse
import copy
import json
import pathlib

import torch
from torch import nn
from torch.utils._pytree import tree_map


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.conv2(torch.relu(self.conv1(x)))


class Network(nn.Module):
    """The network of placement.json."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def place(model, placement, rename=None):
    """Moves modules to their devices; returns a list that fills with (module, device) per move."""
    rename = rename or {}
    moves = []
    modules = dict(model.named_modules())
    missing = sorted(path for path in placement["modules"] if path not in modules)
    if missing:
        raise KeyError(f"the model has no module {', '.join(missing)}")
    # A module's device is that of its own operators: parents first, their children override it.
    for path in sorted(placement["modules"], key=lambda path: path.count(".")):
        name = placement["modules"][path]
        device = torch.device(rename.get(name, name))
        modules[path].to(device)
        modules[path].register_forward_pre_hook(mover(path, device, moves), with_kwargs=True)
    return moves


def mover(path, device, moves):
    """A hook that brings a module's inputs to its device."""

    def move(value):
        if not isinstance(value, torch.Tensor) or value.device == device:
            return value
        moved = value.to(device)
        if moved.device != value.device:  # "cpu:0" and "cpu:1" are both "cpu"
            moves.append((path, str(device)))
        return moved

    return lambda module, args, kwargs: (tree_map(move, args), tree_map(move, kwargs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).with_name("placement.json")
    parser.add_argument("placement", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--device", action="append", default=[], metavar="NAME=DEVICE")
    options = parser.parse_args()

    placement = json.loads(options.placement.read_text())
    if (placement.get("format"), placement.get("version")) != ("trinity.placement", 1):
        parser.error(f"{options.placement}: expected trinity.placement, version 1")
    rename = dict(pair.split("=", 1) for pair in options.device)

    torch.manual_seed(0)
    plain = Network().eval()
    placed = copy.deepcopy(plain)
    moves = place(placed, placement, rename)
    for number, stage in enumerate(placement.get("stages", []), 1):
        name = stage["device"]
        print(f"stage {number} on {rename.get(name, name)}: {', '.join(stage['modules'])}")

    images = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        expected, got = plain(images), placed(images)
    for path, device in moves:
        print(f"moved to {device} before {path}")
    print(f"output {tuple(got.shape)} on {got.device}")
    if got.shape != expected.shape:
        raise SystemExit("the placed model disagrees in shape")
    if got.is_meta:
        print("shapes agree (the device 'meta' has no values)")
        return
    difference = (got.cpu() - expected).abs().max().item()
    agree = torch.allclose(got.cpu(), expected, rtol=1e-3, atol=1e-4)
    print(f"largest difference {difference:.3g}: {'agree' if agree else 'DISAGREE'}")
    if not agree:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
