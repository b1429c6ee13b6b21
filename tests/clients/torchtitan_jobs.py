"""torchtitan (b5bcd76): every fragment makes its ParallelismConfig; the lists of modules go through its own splitter on
its Llama and DeepSeek models, whose pipeline then runs a step on CPU, a process a rank.

  PYTHONPATH=CHECKOUT python tests/clients/torchtitan_jobs.py CASES CHECKOUT   (needs tyro, triton, spmd-types 0.2.3)
"""
import copy
import importlib.abc
import importlib.machinery
import os
import socket
import sys
import tempfile
import types

import record
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

COMMIT = "b5bcd76c66d0acb1a08b176d9639425bc55e0b2a"


class Package(types.ModuleType):
    """A package that is not installed here and of which nothing that is run here calls anything."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class Nothing:
    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __mro_entries__(self, bases):
        return ()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in STUBBED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Package(spec.name)

    def exec_module(self, module):
        pass


def model_of(case):
    """torchtitan's own small model, with as many layers as the case has, from weights by a seed."""
    import torchtitan.models.deepseek_v3 as deepseek
    import torchtitan.models.llama3 as llama

    registry = deepseek.model_registry if case.startswith("deepseek") else llama.model_registry
    config = registry("debugmodel").model
    count = record.model_config(case)["num_hidden_layers"]
    last = config.layers[-1]
    config.layers = config.layers[:count] + [copy.deepcopy(last) for _ in range(count - len(config.layers))]
    torch.manual_seed(0)
    model = config.build()
    model.init_states()
    return model


def parallelism_of(folder):
    scope = {}
    exec((folder / "parallelism.py").read_text(), scope)
    return scope["parallelism"]


TOKENS = 32  # of a micro-batch


def data_of(model, micro_batches):
    torch.manual_seed(1)
    return torch.randint(0, model.config.vocab_size, (2, TOKENS * micro_batches)).unbind()


def loss_of(output, target, **_):
    return torch.nn.functional.cross_entropy(output.float(), target), None


def causal(self, q, k, v, *, scale=None, enable_gqa=False, **_):
    """For FlexAttention's kernel, which has no backward pass on CPU: queries of (tokens, heads, width)."""
    q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=enable_gqa)
    return y.squeeze(0).transpose(0, 1)


def start():
    sys.meta_path.append(Finder())  # after the others: for what is not installed
    torch.set_num_threads(1)
    from torchtitan.models.common.attention import FlexAttention

    FlexAttention.forward = causal


def run_rank(rank, port, jobs, place):
    """A rank of the pipelines of jobs, one after the other: torchtitan's stages under the schedule that it builds."""
    start()
    from torchtitan.distributed import pipeline_parallel as titan

    ranks = parallelism_of(jobs[0][1]).pipeline_parallel_degree
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    mesh = dist.device_mesh.init_device_mesh("cpu", (ranks,), mesh_dim_names=("pp",))
    for case, folder in jobs:
        os.chdir(folder)  # where a schedule's file is
        parallelism = parallelism_of(folder)
        model, micro_batches = model_of(case), parallelism.num_pp_microbatches
        stages, parts = titan._pipeline_module_split(model, mesh, parallelism.pipeline_parallel_schedule,
                                                     torch.device("cpu"), parallelism.module_fqns_per_model_part)
        schedule = titan._build_pipeline_schedule(parallelism=parallelism, stages=stages, loss_fn=loss_of,
                                                  num_microbatches=micro_batches)
        x, y = data_of(model, micro_batches)
        losses, first, last = [], any(s.is_first for s in stages), any(s.is_last for s in stages)
        given = {"target": y, "losses": losses} if last else {}
        schedule.step(*([x] if first else []), **given, return_outputs=False)
        gradients = {name: p.grad for part in parts for name, p in part.named_parameters()}
        torch.save({"losses": [loss.item() for loss in losses], "gradients": gradients}, f"{place}/{case}.{rank}.pt")
        dist.barrier()
    dist.destroy_process_group()


def step_of(case, folder, place):
    """What the ranks' step came to, beside a step of the whole model."""
    parallelism = parallelism_of(folder)
    parts = [torch.load(f"{place}/{case}.{rank}.pt") for rank in range(parallelism.pipeline_parallel_degree)]
    model, micro_batches = model_of(case), parallelism.num_pp_microbatches
    whole = []
    for x, y in zip(*(data.chunk(micro_batches) for data in data_of(model, micro_batches))):
        loss, _ = loss_of(model(x), y)
        loss.backward()
        whole.append(loss.item())
    losses = next(part["losses"] for part in parts if part["losses"])
    assert losses == whole, f"{case}: losses {losses}, of the whole model {whole}"
    worst, seen = 0.0, set()
    parameters = dict(model.named_parameters())
    for part in parts:
        for name, gradient in part["gradients"].items():
            seen.add(name)
            wanted = parameters[name].grad
            assert (gradient is None) == (wanted is None), f"{case}: gradient of {name}"
            if wanted is not None:
                worst = max(worst, ((gradient - wanted).abs().max() / wanted.abs().max().clamp(min=1e-9)).item())
    assert seen == set(parameters), f"{case}: parameters {seen ^ set(parameters)}"
    assert worst < 1e-4, f"{case}: a gradient differs by {worst}"
    return {"losses": losses, "largest_relative_difference_of_gradients": worst}


def split(case, parallelism):
    """Weights of every stage as its splitter cuts the model, and the stages of every rank."""
    from torchtitan.distributed import pipeline_parallel as titan

    model = model_of(case)
    seen = [sum(p.numel() for p in titan._split_module(model, modules).parameters())
            for modules in parallelism.module_fqns_per_model_part]
    weights = sum(p.numel() for p in model.parameters())
    assert sum(seen) == weights, f"{case}: {seen} of {weights} weights"
    degree = parallelism.pipeline_parallel_degree
    ranks = [list(titan._get_pp_rank_to_stage_indices_mapping(rank, degree, parallelism.pipeline_parallel_schedule,
                                                              len(seen))) for rank in range(degree)]
    return {"weights_of_stages": seen, "weights": weights, "ranks": ranks}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def main():
    record.checkout(COMMIT)
    start()
    answers, folders, by_ranks = {}, {}, {}
    for case, folder in record.cases("torchtitan"):
        folder = folder.resolve()
        parallelism = parallelism_of(folder)
        lists = parallelism.module_fqns_per_model_part
        answers[case] = {"schedule": parallelism.pipeline_parallel_schedule, "stages": len(lists or [])}
        folders[case] = folder
        if lists:
            answers[case].update(split(case, parallelism))
            by_ranks.setdefault(parallelism.pipeline_parallel_degree, []).append((case, folder))
    with tempfile.TemporaryDirectory() as place:
        for ranks, jobs in by_ranks.items():
            mp.spawn(run_rank, (free_port(), jobs, place), nprocs=ranks)
            for case, folder in jobs:
                answers[case].update(step_of(case, folder, place))
    record.save("torchtitan", "torchtitan", f"torch {torch.__version__}", COMMIT, answers, folders, NOTE)


STUBBED = ("torchdata", "grain", "datasets", "torchao")
NOTE = ("ParallelismConfig, and with stages: _split_module on torchtitan's debug models, made as deep as the plan's "
        "(every weight is in one stage), and a step of the pipeline of one replica under Gloo on CPU by "
        "_pipeline_module_split and _build_pipeline_schedule: losses equal to the whole model's. Causal "
        "scaled_dot_product_attention stands in for the kernel of FlexAttention, which has no backward pass on CPU; "
        "data, tensor and expert parallelism were not run")

if __name__ == "__main__":
    main()
