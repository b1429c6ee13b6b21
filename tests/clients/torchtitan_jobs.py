"""torchtitan (b5bcd76): every fragment makes its ParallelismConfig; the lists of modules go through its own splitter on
its Llama and DeepSeek models.

  PYTHONPATH=CHECKOUT python tests/clients/torchtitan_jobs.py CASES CHECKOUT
"""
import copy
import importlib.abc
import importlib.machinery
import sys
import types

import record
import torch

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
    """torchtitan's own small model, with as many layers as the case has."""
    import torchtitan.models.deepseek_v3 as deepseek
    import torchtitan.models.llama3 as llama

    registry = deepseek.model_registry if case.startswith("deepseek") else llama.model_registry
    config = registry("debugmodel").model
    count = record.model_config(case)["num_hidden_layers"]
    last = config.layers[-1]
    config.layers = config.layers[:count] + [copy.deepcopy(last) for _ in range(count - len(config.layers))]
    with torch.device("meta"):
        return config.build()


def main():
    record.checkout(COMMIT)
    sys.meta_path.append(Finder())  # after the others: for what is not installed
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


STUBBED = ("spmd_types", "torchdata", "grain", "datasets", "torchao")
NOTE = ("ParallelismConfig and _split_module on the meta device, with torchtitan's debug models made as deep as the plan's: "
        "every weight is in one stage; no step was run")

if __name__ == "__main__":
    main()
