"""PyTorch's pipeline runtime repeats what our executor did: the same weights, samples and schedule, under Gloo, a process a
rank, for as many steps of SGD; the losses are compared.

  trinity tests/clients/executor.lua FOLDER; python tests/clients/pytorch_executor.py FOLDER
"""
import json
import os
import sys
import tempfile

import record
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from pytorch_plans import free_port
from safetensors.torch import load_file
from torch.distributed.pipelining import PipelineStage, schedules

TOLERANCE = 2e-6  # float32: the sums of two libraries have other orders


def stage_of(weights, s, blocks):
    """A block of the network, the last with the product in front of the loss."""
    def linear(name):
        rows, columns = weights[f"{name}/weight"].shape
        made = torch.nn.Linear(columns, rows)
        made.load_state_dict({"weight": weights[f"{name}/weight"], "bias": weights[f"{name}/bias"]})
        return made

    parts = [linear(f"block_{s + 1}/linear"), torch.nn.ReLU()]
    if s == blocks - 1:
        parts.append(linear("leave"))
    return torch.nn.Sequential(*parts)


def run_rank(rank, port, folder, told, place):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=told["blocks"])
    for schedule in told["losses"]:
        run_schedule(rank, folder, schedule, told, place)
    dist.barrier()
    dist.destroy_process_group()


def run_schedule(rank, folder, schedule, told, place):
    blocks, micro_batches = told["blocks"], told["micro_batches"]
    part = stage_of(load_file(f"{folder}/start.safetensors"), rank, blocks)
    stage = PipelineStage(part, rank, blocks, torch.device("cpu"))
    runtime = schedules._PipelineScheduleRuntime([stage], micro_batches, torch.nn.functional.cross_entropy)
    runtime._load_csv(f"{folder}/{schedule}.csv")
    optimiser = torch.optim.SGD(part.parameters(), lr=told["learning_rate"])
    rows = [line.split(",") for line in open(f"{folder}/samples.csv").read().splitlines()]
    x = torch.tensor([[float(cell) for cell in row[:-1]] for row in rows])
    y = torch.tensor([int(row[-1]) for row in rows])
    steps = []
    for _ in told["losses"][schedule]:
        optimiser.zero_grad()
        losses = []
        last = {"target": y, "losses": losses} if rank == blocks - 1 else {}
        runtime.step(*([x] if rank == 0 else []), **last)
        optimiser.step()
        if losses:
            steps.append(sum(loss.item() for loss in losses) / len(losses))
    if steps:
        json.dump(steps, open(f"{place}/{schedule}", "w"))


def main():
    folder = sys.argv[1]
    told = json.load(open(f"{folder}/losses.json"))
    answers = {}
    with tempfile.TemporaryDirectory() as place:
        mp.spawn(run_rank, (free_port(), folder, told, place), nprocs=told["blocks"])
        found = {schedule: json.load(open(f"{place}/{schedule}")) for schedule in told["losses"]}
    for schedule, ours in told["losses"].items():
        theirs = found[schedule]
        worst = max(abs(a - b) for a, b in zip(ours, theirs))
        assert len(ours) == len(theirs) and worst < TOLERANCE, f"{schedule}: {ours} and {theirs}"
        answers[schedule] = {"ours": ours, "theirs": theirs, "largest_difference": worst,
                             "schedule": open(f"{folder}/{schedule}.csv").read()}
    path = record.DATA / "pytorch_executor.json"
    path.write_text(json.dumps({"client": "PyTorch", "version": torch.__version__, "commit": torch.version.git_version,
                                "tolerance": TOLERANCE, "runs": answers}, indent=1, sort_keys=True) + "\n")
    print(path, {schedule: answer["largest_difference"] for schedule, answer in answers.items()})


if __name__ == "__main__":
    main()
