"""AutoParallel's integer programs (a54c252) of whole models, as files for `trinity select`, and their solutions by CBC.

  PYTHONPATH=CHECKOUT python tests/clients/autoparallel_problems.py MODEL OUT.json      gpt2_8, llama3_8b_8x4, ...

MODEL is built by AutoParallel itself on the meta device, with the settings of its examples (example_hf.py,
example_llama3.py: repeated blocks share their choices, parameters are shared out over all ranks). What is written is read
off the program that PuLP holds, constraint by constraint. OUT.json has the choices, costs and limits; beside its
optimum (`objective`) stands what solving took: seconds of PuLP's call on the clock, processor seconds of CBC, and those of
PuLP, which writes the program for it and reads the answer.

Devices are CPUs that call themselves H100 in a fake process group: costs are those of AutoParallel's H100 tables, and
mean nothing beyond that both solvers get the same ones.
"""
import json
import math
import re
import resource
import sys
import time
import unittest.mock

import pulp
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.distributed.tensor.placement_types import Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

COMMIT = "a54c2529b1cb10b6b27a585b4a6fc2f84bc1d232"


def gpt2(layers=12):
    from transformers import AutoModelForCausalLM, GPT2Config

    model = AutoModelForCausalLM.from_config(GPT2Config(n_layer=layers, use_cache=False))
    return model, lambda: torch.randint(0, 50257, (16, 128)), None


def llama3(layers=32, batch=16, length=8192):
    from autoparallel._testing.models.llama3 import Transformer, TransformerModelArgs

    model = Transformer(TransformerModelArgs(dim=4096, n_layers=layers, n_heads=32, n_kv_heads=8, ffn_dim_multiplier=1.3,
                                             multiple_of=1024, rope_theta=500000, vocab_size=128256, max_seq_len=length))
    return model, lambda: torch.randint(0, 128256, (batch, length)), (Shard(0), Shard(2))


MODELS = {
    "gpt2_8": (gpt2, (8,)),
    "gpt2_2_layers_8": (lambda: gpt2(2), (8,)),
    "llama3_8b_8x4": (llama3, (8, 4)),
    "llama3_2_layers_8x4": (lambda: llama3(2), (8, 4)),
}


def pretend_h100():
    for module in (torch.cuda, torch.cpu):
        module.get_device_name = lambda *_: "H100"
        module.get_device_capability = lambda *_: (9, 0)


class Problem:
    """What the program of a ShardingOptimizer says, by its nodes that have variables."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.forbidden, self.pinned, self.equal, self.flow = set(), [], [], {}
        self.weights, self.low, self.high = {}, None, None
        # (node, argument, choice, the producer's choice) of every variable of PuLP's
        self.key_of = {variable.name: key for key, variable in optimizer.pulp_variables.items()}
        for name, constraint in optimizer.prob.constraints.items():
            self.read(re.sub(r"(_constraint)?_\d+$", "", name), name, constraint)

    def read(self, kind, name, constraint):
        plus = [self.key_of[v.name] for v, c in constraint.items() if c > 0]
        minus = [self.key_of[v.name] for v, c in constraint.items() if c < 0]
        if kind in ("unique_decision", "same_across_args"):
            return  # which the form has by itself
        if kind in ("inf_cases", "fwd_param_dtype", "grad_reduce_dtype") or kind.endswith("_disable"):
            assert constraint.constant == 0 and not minus, name
            self.forbidden.update(plus)
        elif kind == "output_input_consistent":
            self.read_flow(plus, minus)
        elif kind in ("grad_param", "grad_input", "grad_output"):
            if plus or minus:  # else both are the same variables
                self.equal.append([self.literals(plus), self.literals(minus)])
        elif kind in ("input", "output", "user"):
            assert constraint.constant == -1 and not minus, name
            self.pinned.append(self.literals(plus))
        elif name.startswith("memory_constraint"):
            assert not minus, name
            weights = {}
            for variable, coefficient in constraint.items():
                weights[self.key_of[variable.name][::2]] = coefficient
            self.weights = weights
            if name.endswith("low"):
                self.low = -constraint.constant
            else:
                self.high = -constraint.constant
        else:
            raise ValueError(f"constraint {name} of no known kind")

    def literals(self, keys):
        """Choices of a node whose variables these are."""
        return [list(literal) for literal in sorted({(node, out) for node, argument, out, _ in keys})]

    def read_flow(self, plus, minus):
        """A reader's argument goes by the choice of a node; where it goes by two, these are equal."""
        if not plus and not minus:
            return
        if plus and minus:
            producer, (reader, argument) = plus[0][0], minus[0][:2]
            self.flow.setdefault((reader, argument), [])
            if producer not in self.flow[(reader, argument)]:
                self.flow[(reader, argument)].append(producer)

    def tables(self, number):
        variables = self.optimizer.decision_vars
        arguments = {}
        for key in variables:
            arguments.setdefault(key[:2], []).append(key)
        tables, equal = [], []
        for (node, argument), keys in sorted(arguments.items()):
            outs, ins = 1 + max(k[2] for k in keys), 1 + max(k[3] for k in keys)
            producers = self.flow.get((node, argument), [])
            times = [[1 + len(self.optimizer._root_to_linked.get((node, argument, o, i), [])) for i in range(ins)]
                     for o in range(outs)]

            def cost(o, i, part):
                key = (node, argument, o, i)
                if key in self.forbidden or not math.isfinite(variables[key].comm_cost + variables[key].compute_cost):
                    return None
                return getattr(variables[key], part) * times[o][i]

            compute = [variables[(node, argument, o, 0)].compute_cost * times[o][0] for o in range(outs)]
            compute = [c if math.isfinite(c) else None for c in compute]
            comm = [[cost(o, i, "comm_cost") for i in range(ins)] for o in range(outs)]
            transition = [[0 if comm[o][i] is None else cost(o, i, "sharding_transition_cost") for i in range(ins)]
                          for o in range(outs)]
            if not producers and ins > 1:  # the program leaves this argument free: the least of each row
                for o in range(outs):
                    sums = [(comm[o][i] + transition[o][i], i) for i in range(ins) if comm[o][i] is not None]
                    i = min(sums)[1] if sums else 0
                    comm[o], transition[o] = [comm[o][i]], [transition[o][i]]
            tables.append({"node": number[node], "argument": argument,
                           "from": number[producers[0]] if producers else None, "compute": compute, "comm": comm,
                           "transition": transition})
            for other in producers[1:]:
                equal += [[[[number[producers[0]], i]], [[number[other], i]]] for i in range(ins)]
        return tables, equal

    def form(self):
        optimizer = self.optimizer
        roots = sorted({key[0] for key in optimizer.decision_vars})
        number = {node: n for n, node in enumerate(roots)}

        def told(specs):
            if isinstance(specs, (list, tuple)):
                return "(" + ", ".join(told(s) for s in specs) + ")"
            return "None" if specs is None else "".join(str(p) for p in specs.placements)

        nodes = []
        for node in roots:
            strategies = optimizer.strats[optimizer.nodes[node]].strategies
            nodes.append({"name": optimizer.nodes[node].name, "op": str(optimizer.nodes[node].target),
                          "choices": [told(s.output_specs) for s in strategies]})
        tables, equal = self.tables(number)

        def renumbered(literals):
            return [[number[node], out] for node, out in literals]

        equal += [[renumbered(a), renumbered(b)] for a, b in self.equal]
        mesh = optimizer.mesh
        form = {"mesh": {"shape": list(mesh.shape), "dim_names": list(mesh.mesh_dim_names)}, "nodes": nodes,
                "tables": tables, "equal": equal, "pinned": [renumbered(literals) for literals in self.pinned]}
        if self.low is not None:
            form["memory"] = {"low": self.low, "high": self.high,
                              "weights": [[number[node], out, w] for (node, out), w in sorted(self.weights.items())]}
        return form, number


def processor_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def solved(name):
    """The form of a model's program, with its optimum."""
    from autoparallel.api import AutoParallel
    from autoparallel.cost_models.collective_runtime_estimation import set_nccl_topo_config  # noqa: F401

    pretend_h100()
    make, shape = MODELS[name]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=math.prod(shape))
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp")[: len(shape)])
    with torch.device("meta"):
        model, inputs, outputs = make()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    start = time.time()
    with AutoParallel(model, inputs, mesh, policy, repeated_subgraphs=True) as auto:
        auto.add_parameter_memory_constraint(low=None, high=None)
        auto.add_input_constraints([(Shard(0),) + (Replicate(),) * (mesh.ndim - 1)])
        if outputs:
            auto.add_output_constraints([outputs])
        optimizer = auto.sharding_optimizer
        built = time.time() - start
        optimizer._set_objective()
        clock, processor, own = time.time(), processor_s(), time.process_time()
        with unittest.mock.patch.object(optimizer, "selected_keys", [], create=True):
            optimizer._solve(verbose=False)
            keys = list(optimizer.selected_keys)
        clock, processor, own = time.time() - clock, processor_s() - processor, time.process_time() - own
    problem = Problem(optimizer)
    form, number = problem.form()
    solution = {number[key[0]]: key[2] for key in keys if key[0] in number}
    form["solution"] = [solution[n] for n in range(len(form["nodes"]))]
    form["objective"] = pulp.value(optimizer.prob.objective)
    form["cbc"] = {"pulp": pulp.__version__, "clock_s": clock, "processor_s": processor, "pulp_processor_s": own, "built_s": built,
                   "variables": len(optimizer.pulp_variables), "constraints": len(optimizer.prob.constraints),
                   "status": pulp.LpStatus[optimizer.prob.status], "torch": torch.__version__, "commit": COMMIT}
    return form


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(MODELS)} OUT.json   (PYTHONPATH: sources at commit {COMMIT})")
    form = solved(sys.argv[1])
    with open(sys.argv[2], "w") as out:
        json.dump(form, out, separators=(",", ":"))
    print(sys.argv[1], form["objective"], json.dumps(form["cbc"]))


if __name__ == "__main__":
    main()
