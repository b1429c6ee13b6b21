"""AutoParallel's integer programs (a54c252) of whole models, solved by CBC and by `trinity study select`.

  PYTHONPATH=CHECKOUT python tests/clients/autoparallel_problems.py MODEL TRINITY     gpt2_8, llama3_8b_8x4; the program

MODEL is built by AutoParallel itself on the meta device, with the settings of its examples (example_hf.py,
example_llama3.py: repeated blocks share their choices, parameters are shared out over all ranks). What is written is read
off the program that PuLP holds, constraint by constraint: choices, costs and limits (tests/data/clients/autoparallel).
What both solvers took stands in autoparallel_solver.json: of CBC the seconds of PuLP's call on the clock, processor
seconds of its own, and those of PuLP, which writes the program for it and reads the answer; of trinity the seconds that
it tells and the processor seconds of the whole command. AutoParallel loads what trinity chose and adds up what it costs.

Devices are CPUs that call themselves H100 in a fake process group: costs are those of AutoParallel's H100 tables, and
mean nothing beyond that both solvers get the same ones.
"""
import gzip
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import pulp
import record
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.distributed.tensor._op_schema import _pretty_print_spec
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

        linked = {}
        for key, root in optimizer.cluster_links.items():
            linked.setdefault(root[0], set()).add(key[0])
        nodes = []
        for node in roots:
            strategies = optimizer.strats[optimizer.nodes[node]].strategies
            nodes.append({"name": optimizer.nodes[node].name, "op": str(optimizer.nodes[node].target),
                          "choices": [_pretty_print_spec(s.output_specs) for s in strategies],
                          "inputs": [[_pretty_print_spec(i) for i in s.input_specs] for s in strategies]})
            if node in linked:
                nodes[-1]["linked"] = [optimizer.nodes[other].name for other in sorted(linked[node])]
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


def shared(form):
    """The form with costs written once: a table that has those of an earlier one names it."""
    seen = {}
    for number, table in enumerate(form["tables"]):
        if "as" in table:
            continue
        costs = {name: table[name] for name in ("compute", "comm", "transition")}
        earlier = seen.setdefault(json.dumps(costs), number)
        if earlier != number:
            for name in costs:
                del table[name]
            table["as"] = earlier
    return form


def write(path, form):
    text = json.dumps(shared(form), separators=(",", ":")).encode()
    with open(path, "wb") as out:
        out.write(gzip.compress(text, 9, mtime=0) if path.endswith(".gz") else text)


def processor_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def chosen(form, program, optimizer):
    """What trinity chooses, with what AutoParallel says that it costs."""
    with tempfile.TemporaryDirectory() as place:
        problem, placements = f"{place}/problem.json", f"{place}/placements.json"
        write(problem, form)
        processor = processor_s()
        told = subprocess.run([program, "select", problem, "--placements", placements, "--json"], cwd=place, check=True,
                              capture_output=True, text=True)
        processor = processor_s() - processor
        answer = json.loads(told.stdout)
        loaded = optimizer.load_placements(placements)
    assert len(loaded) == sum(1 for node in optimizer.strats if node.op != "output"), "placements of some nodes are missing"
    total = optimizer._compute_solution_cost(optimizer._to_concrete_solution(loaded))["total"]
    return {"cost": answer["cost"], "bound": answer["bound"], "optimal": answer["optimal"],
            "seconds": answer["seconds"], "processor_s": processor, "total_by_autoparallel": total}


def solved(name, program):
    """The form of a model's program, and what solving it took."""
    from autoparallel.api import AutoParallel

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
        optimizer._solve(verbose=False)
        clock, processor, own = time.time() - clock, processor_s() - processor, time.process_time() - own
        form, number = Problem(optimizer).form()
        solution = {number[key[0]]: key[2] for key in optimizer.selected_keys if key[0] in number}
        form["solution"] = [solution[n] for n in range(len(form["nodes"]))]
        form["objective"] = pulp.value(optimizer.prob.objective)
        theirs = {"objective": form["objective"], "seconds": clock, "processor_s": processor, "pulp_processor_s": own,
                  "built_s": built, "variables": len(optimizer.pulp_variables),
                  "constraints": len(optimizer.prob.constraints), "status": pulp.LpStatus[optimizer.prob.status],
                  "total_by_autoparallel": optimizer._compute_solution_cost(
                      optimizer._extract_and_validate_solution())["total"]}
        return form, {"cbc": theirs, "trinity": chosen(form, program, optimizer), "load_average": os.getloadavg()[0]}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(MODELS)} TRINITY   (PYTHONPATH: sources at commit {COMMIT})")
    form, times = solved(sys.argv[1], sys.argv[2])
    (record.DATA / "autoparallel").mkdir(exist_ok=True)
    write(str(record.DATA / "autoparallel" / f"{sys.argv[1]}.json.gz"), form)
    path = record.DATA / "autoparallel_solver.json"
    kept = json.loads(path.read_text()) if path.exists() else {"cases": {}}
    kept.update(client="AutoParallel", commit=COMMIT, version=f"torch {torch.__version__}, PuLP {pulp.__version__} with CBC")
    kept["cases"][sys.argv[1]] = times
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    print(sys.argv[1], json.dumps(times))


if __name__ == "__main__":
    main()
