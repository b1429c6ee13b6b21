"""torchtitan (b5bcd76): every fragment makes its ParallelismConfig; the lists of modules go through its own splitter on
its Llama and DeepSeek models.

  PYTHONPATH=CHECKOUT python tests/clients/torchtitan_jobs.py CASES CHECKOUT
"""
import os
import sys
import types

import record
import torch

COMMIT = "b5bcd76c66d0acb1a08b176d9639425bc55e0b2a"


def stub(name, **fields):
    module = types.ModuleType(name)
    module.__dict__.update(fields)
    sys.modules[name] = module
    return module


class Anything(types.ModuleType):
    """A package that is not installed here and that nothing run here calls."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: (args[0] if args and callable(args[0]) else None)


def main():
    record.checkout(COMMIT)
    for name in STUBBED:
        sys.modules.setdefault(name, Anything(name))
    from torchtitan.distributed import pipeline_parallel as titan

    answers, folders = {}, {}
    for case, folder in record.cases("torchtitan"):
        scope = {}
        exec((folder / "parallelism.py").read_text(), scope)
        parallelism = scope["parallelism"]
        lists = parallelism.module_fqns_per_model_part
        answer = {"schedule": parallelism.pipeline_parallel_schedule, "stages": len(lists or [])}
        if lists:
            model = model_of(case)
            names = {name for name, _ in model.named_parameters()}
            seen = []
            for modules in lists:
                part = titan._split_module(model, modules)
                seen.append(sum(p.numel() for p in part.parameters()))
            answer["weights_of_stages"] = seen
            answer["weights"] = sum(p.numel() for p in model.parameters())
            assert sum(seen) == answer["weights"], f"{case}: {seen} of {answer['weights']} weights"
            degree = parallelism.pipeline_parallel_degree
            answer["ranks"] = [list(titan._get_pp_rank_to_stage_indices_mapping(
                rank, degree, parallelism.pipeline_parallel_schedule, len(lists))) for rank in range(degree)]
        answers[case], folders[case] = answer, folder
    record.save("torchtitan", "torchtitan", f"torch {torch.__version__}", COMMIT, answers, folders, NOTE)


STUBBED = []
NOTE = ""

if __name__ == "__main__":
    main()
