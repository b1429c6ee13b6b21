"""PyTorch: schedules loaded by its runtime and run under Gloo.

  python tests/clients/pytorch_plans.py CASES [schedules|orders ...]
"""
import json
import os
import socket
import sys
import tempfile
import warnings

import record
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.pipelining import PipelineStage, schedules

WIDTH, SAMPLES = 4, 2


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def layers_of(stages):
    """A layer a stage, the same on every rank."""
    torch.manual_seed(0)
    return [torch.nn.Linear(WIDTH, WIDTH) for _ in range(stages)]


def data_of(micro_batches):
    torch.manual_seed(1)
    return torch.randn(SAMPLES * micro_batches, WIDTH), torch.randn(SAMPLES * micro_batches, WIDTH)


def loss_of(output, target):
    return ((output - target) ** 2).mean()


def ranks_of(path):
    """Rows of a schedule as lists of stages, and the number of micro-batches."""
    rows = [row.split(",") for row in path.read_text().splitlines()]
    stages, micro_batches = [], 0
    for row in rows:
        stages.append(sorted({int(cell[: next(i for i, c in enumerate(cell) if not c.isdigit())]) for cell in row}))
        micro_batches = max([micro_batches] + [int(cell.split("F")[1]) + 1 for cell in row if "F" in cell])
    return stages, micro_batches


def run_rank(rank, port, jobs, folder):
    """Runs schedules of one number of ranks, one after the other."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=len(jobs[0][2]))
    for case, path, stages, micro_batches in jobs:
        count = sum(map(len, stages))
        mine = stages[rank]
        layers = layers_of(count)
        parts = [PipelineStage(layers[s], s, count, torch.device("cpu")) for s in mine]
        runtime = schedules._PipelineScheduleRuntime(parts, micro_batches, loss_of, scale_grads=False)
        runtime._load_csv(path)
        x, y = data_of(micro_batches)
        losses = []
        last = count - 1 in mine
        runtime.step(*([x] if 0 in mine else []), **({"target": y, "losses": losses} if last else {}))
        torch.save({"losses": [loss.item() for loss in losses],
                    "gradients": {s: layers[s].weight.grad for s in mine}}, f"{folder}/{case}.{rank}.pt")
        dist.barrier()
    dist.destroy_process_group()


def answer_of(case, path, stages, micro_batches, folder):
    """Losses and gradients of a schedule's step, beside those of the same layers in one process."""
    parts = [torch.load(f"{folder}/{case}.{rank}.pt") for rank in range(len(stages))]
    layers = layers_of(sum(map(len, stages)))
    x, y = data_of(micro_batches)
    plain = []
    for part, target in zip(x.chunk(micro_batches), y.chunk(micro_batches)):
        for layer in layers:
            part = layer(part)
        loss = loss_of(part, target)
        loss.backward()
        plain.append(loss.item())
    losses = next(part["losses"] for part in parts if part["losses"])
    worst = 0.0
    for part in parts:
        for s, gradient in part["gradients"].items():
            worst = max(worst, (gradient - layers[s].weight.grad).abs().max().item())
    assert losses == plain, f"{path}: losses {losses}, without a pipeline {plain}"
    assert worst < 1e-6, f"{path}: a gradient differs by {worst}"
    return {"ranks": stages, "micro_batches": micro_batches, "losses": losses, "largest_difference_of_gradients": worst}


def run_schedules():
    answers, folders, by_ranks = {}, {}, {}
    for case, folder in record.cases("pytorch_schedule"):
        path = folder / "schedule.csv"
        stages, micro_batches = ranks_of(path)
        by_ranks.setdefault(len(stages), []).append((case, str(path), stages, micro_batches))
        folders[case] = folder
    with tempfile.TemporaryDirectory() as place:
        for ranks, jobs in by_ranks.items():
            mp.spawn(run_rank, (free_port(), jobs, place), nprocs=ranks)
            for job in jobs:
                answers[job[0]] = answer_of(*job, place)
    record.save("pytorch_schedule", "PyTorch", torch.__version__, torch.version.git_version, answers, folders,
                "loaded and run by _PipelineScheduleRuntime under Gloo, a process a rank: losses of micro-batches equal "
                "to those of one process without a pipeline")


def dump_orders():
    """Orders that PyTorch makes itself, as it dumps them."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    out = {}
    for name, kind, ids in (("interleaved", schedules.ScheduleInterleaved1F1B, [0, 4]),
                            ("zb-interleaved", schedules.ScheduleInterleavedZeroBubble, [0, 4]),
                            ("zb-v", schedules.ScheduleZBVZeroBubble, [0, 7]),
                            ("dualpipe-v", schedules.ScheduleDualPipeV, [0, 7])):
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
        layers = layers_of(8)
        parts = [PipelineStage(layers[s], s, 8, torch.device("cpu")) for s in ids]
        made = kind(parts, 8, loss_of)
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            made._dump_csv(file.name, **({"format": "compute_only"} if "format" in made._dump_csv.__code__.co_varnames
                                         else {}))
            out[name] = open(file.name, newline="").read()
        dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    made = schedules.Schedule1F1B(PipelineStage(layers_of(4)[0], 0, 4, torch.device("cpu")), 8, loss_of)
    order = made._get_pipeline_order()
    dist.destroy_process_group()
    rows = []
    for rank in range(4):
        cells = [str(action) for action in order[rank] if action is not None]
        if rank == 3:  # 2.13 numbers the last rank's forward tasks from 1, which its own loader refuses
            cells = [f"3F{int(cell[2:]) - 1}" if cell.startswith("3F") else cell for cell in cells]
        rows.append(",".join(cell for cell in cells if "REDUCE_GRAD" not in cell))
    out["1f1b"] = "\r\n".join(rows) + "\r\n"
    path = record.DATA / "pytorch_orders.json"
    path.write_text(json.dumps({"client": "PyTorch", "version": torch.__version__, "ranks": 4, "micro_batches": 8,
                                "note": "written by _dump_csv (compute_only); 1f1b: by Schedule1F1B's "
                                        "_get_pipeline_order, REDUCE_GRAD left out, the last rank's forward numbers "
                                        "lowered by one", "orders": out}, indent=1) + "\n")
    print(path)


def main():
    jobs = {"schedules": run_schedules, "orders": dump_orders}
    for name in sys.argv[2:] or jobs:
        jobs[name]()


if __name__ == "__main__":
    main()
