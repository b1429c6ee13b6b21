"""PyTorch: schedules loaded by its runtime and run under Gloo, cuts of traced models, DTensor plans, FSDP2.

  python tests/clients/pytorch_plans.py CASES [schedules|cuts|dtensor|fsdp2 ...]
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
from torch.distributed.pipelining import PipelineStage, SplitPoint, pipeline, schedules

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


def model_of(case):
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.for_model(**{**record.model_config(case), "dtype": "float32"})
    config.use_cache = False
    config._attn_implementation = "eager"
    return AutoModelForCausalLM.from_config(config)


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Decoder(torch.nn.Module):
    """A decoder with the module paths of transformers' and small layers of its own: transformers 5.23.0 makes masks and
    angles once for all layers, and of stages so traced pipeline() 2.13 leaves an input out when it runs them."""

    def __init__(self, case):
        super().__init__()
        torch.manual_seed(0)
        config = record.model_config(case)
        gpt2 = config["model_type"] == "gpt2"
        count, width = config["n_layer" if gpt2 else "num_hidden_layers"], 16
        inner = torch.nn.Module()
        setattr(self, "transformer" if gpt2 else "model", inner)
        self.names = ("wte", "h", "ln_f") if gpt2 else ("embed_tokens", "layers", "norm")
        for name, module in zip(self.names, (torch.nn.Embedding(512, width),
                                             torch.nn.ModuleList(Block(width) for _ in range(count)),
                                             torch.nn.LayerNorm(width))):
            setattr(inner, name, module)
        self.lm_head = torch.nn.Linear(width, 512, bias=False)

    def forward(self, tokens):
        inner = getattr(self, "model", None) or self.transformer
        x = getattr(inner, self.names[0])(tokens)
        for layer in getattr(inner, self.names[1]):
            x = layer(x)
        return self.lm_head(getattr(inner, self.names[2])(x))


def run_cuts():
    answers, folders = {}, {}
    for case, folder in record.cases("split_spec"):
        spec = json.loads((folder / "split_spec.json").read_text())
        model = Decoder(case).eval()
        tokens = torch.arange(16).reshape(2, 8)
        pipe = pipeline(model, mb_args=(tokens,), split_spec={path: SplitPoint[word] for path, word in spec.items()})
        assert pipe.num_stages == len(spec) + 1, f"{case}: {pipe.num_stages} stages"
        value, layers = tokens, []
        with torch.no_grad():
            for s in range(pipe.num_stages):
                part = pipe.get_stage_module(s)
                value = part(value)
                names = {".".join(name.split(".")[:3]) for name, _ in part.named_parameters()}
                layers.append(sorted(name for name in names if name.split(".")[-1].isdigit()))
            difference = (value - model(tokens)).abs().max().item()
        assert difference == 0, f"{case}: logits differ by {difference}"
        answers[case], folders[case] = {"stages": pipe.num_stages, "layers": layers}, folder
    record.save("split_spec", "PyTorch", torch.__version__, torch.version.git_version, answers, folders,
                "pipeline() traced a decoder with the module paths of transformers' and cut it there; the pieces in order "
                "gave the logits of the whole. Models of transformers 5.23.0 themselves are traced and cut, but their "
                "pieces do not run: pipeline() 2.13 leaves an input out")


def styles_of(entry):
    """The few lines that turn an entry of dtensor.json into an object."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    kinds = {"ColwiseParallel": ColwiseParallel, "RowwiseParallel": RowwiseParallel}
    given = {name: Replicate() if value == "R" else Shard(int(value[2:-1])) for name, value in entry.items()
             if name != "style"}
    return kinds[entry["style"]](**given)


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(64, 256, bias=False), torch.nn.Linear(256, 64, bias=False)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def run_tensor_rank(rank, port, jobs, size, folder):
    from torch.distributed.device_mesh import init_device_mesh

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    for case, text in jobs:
        run_tensor_case(rank, mesh, case, json.loads(text), folder)
    dist.barrier()
    dist.destroy_process_group()


def run_tensor_case(rank, mesh, case, plan, folder):
    from torch.distributed.tensor.parallel import parallelize_module

    torch.manual_seed(0)
    model = Mlp() if case.startswith("mlp") else model_of(case)
    torch.manual_seed(1)
    if case.startswith("mlp"):
        data = torch.randn(16, 64)
        call = lambda m: m(data).pow(2).mean()
    else:
        tokens = torch.randint(0, 500, (2, 8))
        call = lambda m: m(input_ids=tokens, use_cache=False).logits.log_softmax(-1)[..., 3].mean()
    whole = call(model).item()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a path that no module has is a warning
        parallelize_module(model, mesh, {path: styles_of(entry) for path, entry in plan["plan"].items()})
    parts = call(model)
    parts.backward()
    placements = {name: str(tuple(p.placements)) if hasattr(p, "placements") else "none"
                  for name, p in model.named_parameters()}
    if rank == 0:
        json.dump({"whole": whole, "parts": float(parts.item()), "placements": placements}, open(f"{folder}/{case}", "w"))


def run_tensor():
    answers, folders, by_size = {}, {}, {}
    for case, folder in record.cases("dtensor"):
        text = (folder / "dtensor.json").read_text()
        by_size.setdefault(json.loads(text)["mesh"]["tp"], []).append((case, text))
        folders[case] = folder
    with tempfile.TemporaryDirectory() as place:
        for size, jobs in by_size.items():
            mp.spawn(run_tensor_rank, (free_port(), jobs, size, place), nprocs=size)
            for case, _ in jobs:
                answer = json.load(open(f"{place}/{case}"))
                assert abs(answer["whole"] - answer["parts"]) < 1e-5, f"{case}: {answer['whole']} and {answer['parts']}"
                answers[case] = answer
    record.save("dtensor", "PyTorch", torch.__version__, torch.version.git_version, answers, folders,
                "parallelize_module under Gloo, two processes: the same loss as of the whole model")


def run_fsdp2():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    answers, folders = {}, {}
    for case, folder in record.cases("fsdp2"):
        given = json.loads((folder / "fsdp2.json").read_text())
        sizes = list(given["mesh"].values())
        count = 1
        for size in sizes:
            count *= size
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=count)
        mesh = init_device_mesh("cpu", tuple(sizes), mesh_dim_names=tuple(given["mesh"]))
        model = model_of(case)
        policy = MixedPrecisionPolicy(**{name: getattr(torch, word) for name, word in given.get("mp_policy", {}).items()})
        for path in given["wrap"]:
            fully_shard(model.get_submodule(path), mesh=mesh, mp_policy=policy,
                        reshard_after_forward=given["reshard_after_forward"])
        wrapped = [name for name, module in model.named_modules() if isinstance(module, FSDPModule)]
        held = sum(p.to_local().numel() for p in model.parameters())
        answers[case] = {"wrapped": wrapped, "weights": sum(p.numel() for p in model.parameters()), "held_by_a_rank": held}
        assert set(wrapped) == set(given["wrap"]), f"{case}: wrapped {wrapped}"
        folders[case] = folder
        dist.destroy_process_group()
    record.save("fsdp2", "PyTorch", torch.__version__, torch.version.git_version, answers, folders,
                "fully_shard on CPU in a fake process group: parameters are sharded, no step was run")


def main():
    jobs = {"schedules": run_schedules, "orders": dump_orders, "cuts": run_cuts, "dtensor": run_tensor,
            "fsdp2": run_fsdp2}
    for name in sys.argv[2:] or jobs:
        jobs[name]()


if __name__ == "__main__":
    main()
