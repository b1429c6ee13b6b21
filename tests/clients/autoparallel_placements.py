"""AutoParallel (a54c252): placements go through its own load_placements(), and its solver keeps to them.

  PYTHONPATH=CHECKOUT python tests/clients/autoparallel_placements.py CASES CHECKOUT
  PYTHONPATH=CHECKOUT python tests/clients/autoparallel_placements.py nodes CHECKOUT    writes the names of the nodes

It wants a mesh of GPUs: here the mesh is of CPUs in a fake process group, and the device calls itself an H100.
"""
import json
import pathlib
import sys

import record
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.placement_types import Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

COMMIT = "a54c2529b1cb10b6b27a585b4a6fc2f84bc1d232"


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(64, 256, bias=False), torch.nn.Linear(256, 64, bias=False)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def solve(placements=None):
    """AutoParallel's solution as get_json() tells it, and what load_placements() made of a file."""
    from autoparallel.api import AutoParallel

    torch.cpu.get_device_name = lambda *_: "H100"
    torch.cuda.get_device_name = lambda *_: "H100"
    torch.cpu.get_device_capability = lambda *_: (9, 0)
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    with torch.device("meta"):
        model = Mlp()
    loaded = None
    with AutoParallel(model, lambda: torch.randn(32, 64), mesh) as auto:
        auto.add_input_constraints([(Shard(0), Replicate())])
        auto.add_output_constraints([(Shard(0), Replicate())])
        if placements:
            optimizer = auto.sharding_optimizer
            loaded = optimizer.load_placements(placements)
            for node, spec in loaded.items():
                if node.name != "primals_3":  # the input, which is pinned above
                    optimizer.add_node_constraint(node, tuple(spec.output_specs.placements))
        auto.optimize_placement(verbose=False)
        solved = auto.sharding_optimizer.get_json()
    torch.distributed.destroy_process_group()
    return solved, loaded


def main():
    record.checkout(COMMIT)
    if sys.argv[1] == "nodes":
        solved, _ = solve()
        for node in solved["nodes"]:
            node.pop("source", None)
        path = record.DATA / "autoparallel_nodes.json"
        path.write_text(json.dumps(solved, indent=1) + "\n")
        print(path)
        return
    answers, folders = {}, {}
    for case, folder in record.cases("autoparallel"):
        path = folder / "placements.json"
        solved, loaded = solve(str(path))
        wanted = {name: entry["output"] for name, entry in json.loads(path.read_text())["placements"].items()}
        got = {node["name"]: node["placement"] for node in solved["nodes"] if node["name"] in wanted}
        assert got == wanted, f"{case}: {got} instead of {wanted}"
        answers[case] = {"loaded": sorted(node.name for node in loaded), "placements": got, "total": solved["summary"]["total"]}
        folders[case] = folder
    record.save("autoparallel", "AutoParallel", f"torch {torch.__version__}", COMMIT, answers, folders,
                "load_placements and the solver, on a mesh of CPUs that call themselves H100: costs mean nothing")


if __name__ == "__main__":
    main()
