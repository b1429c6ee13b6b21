"""Megatron-LM (d98e8a64): every array of arguments goes through its own parser and check of arguments, on CPU; every
layout through its own parser and validator, with layouts of all kinds that our reader is compared with.

  PYTHONPATH=CHECKOUT python tests/clients/megatron_arguments.py CASES CHECKOUT     (needs triton, which it imports)
"""
import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import types
import typing

typing.override = getattr(typing, "override", lambda function: function)  # of Python 3.12

import record

COMMIT = "d98e8a64ddf34856e74b24714e3bedb2f5a39553"


def words_of(path):
    """The array as bash reads it."""
    script = f'source "{path}"; printf "%s\\n" "${{MODEL_PARALLEL_ARGS[@]}}"'
    return subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


MODEL = ["--num-layers", "LAYERS", "--hidden-size", "64", "--num-attention-heads", "4", "--seq-length", "128",
         "--max-position-embeddings", "128"]


FURTHER = ["--bf16", "--train-iters", "1", "--lr", "1e-3", "--no-gradient-accumulation-fusion",
           "--untie-embeddings-and-output-weights"]
FSDP = ["--ckpt-format", "fsdp_dtensor"]  # which its check wants beside --use-megatron-fsdp
ANSWERED = ["tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
            "context_parallel_size", "expert_model_parallel_size", "data_parallel_size", "sequence_parallel",
            "micro_batch_size", "global_batch_size", "recompute_granularity", "recompute_method",
            "recompute_num_layers", "use_distributed_optimizer", "data_parallel_sharding_strategy"]


def parse(words, layers, ranks, experts):
    """The arguments as Megatron-LM's own parser reads them and its own check completes them."""
    import torch
    from megatron.training.arguments import parse_args, validate_args

    torch.cuda.get_device_capability = lambda *_: (9, 0)  # an H100, which its check asks for
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0)
    os.environ.update(WORLD_SIZE=str(ranks), RANK="0")
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "8" if "--use-megatron-fsdp" in words else "1"
    model = [str(layers) if word == "LAYERS" else word for word in MODEL]
    further = FURTHER + (FSDP if "--use-megatron-fsdp" in words else [])
    if experts:
        further += ["--num-experts", str(experts)]
    given, sys.argv = sys.argv, ["pretrain_gpt.py", *model, *words, *further]
    try:
        arguments = parse_args()
        validate_args(arguments)
    finally:
        sys.argv = given
    return arguments


def ranks_of(words):
    """How many ranks the head of the file states."""
    return int(words.split("(")[1].split(" ranks")[0])


def main():
    record.checkout(COMMIT)
    from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout as Layout

    answers, folders = {}, {}
    for case, folder in record.cases("megatron"):
        path = folder / "megatron.sh"
        config = record.model_config(case)
        layers = config.get("num_hidden_layers", config.get("n_layer"))
        ranks = ranks_of(path.read_text())
        with contextlib.redirect_stdout(io.StringIO()):
            arguments = parse(words_of(path), layers, ranks, config.get("n_routed_experts"))
        answer = {name: getattr(arguments, name) for name in ANSWERED}
        answer["ranks_in_all"] = ranks
        if arguments.pipeline_model_parallel_layout:
            layout = Layout(arguments.pipeline_model_parallel_layout, arguments.pipeline_model_parallel_size)
            layout.validate_layer_layout(layers, None)
            answer["virtual_pipeline_model_parallel_size"] = layout.virtual_pipeline_model_parallel_size
            answer["ranks"] = [[[unit.name for unit in chunk] for chunk in rank] for rank in layout.layout]
        answers[case], folders[case] = answer, folder
    record.save("megatron", "Megatron-LM", "", COMMIT, answers, folders,
                "parse_args and validate_args on CPU, beside a model's arguments; no step was run")
    probe(Layout)


def probe(layout):
    """Layouts of all kinds, and whether Megatron-LM takes them: what our own reader is compared with."""
    texts = ["Ett|tt|tt|ttL", "Et*3|(tt|)*29,m|L", "E|(t|)*3,m|m||L", "(t|)*3L", "Et|t||tL", "Ett", "ttL", "tEtL", "EttLt",
             "Et|tL|", "EttmL", "Etm|tL", "Ett|mL", "Em|ttL", "Ett|m|m|L", "E E", "Ex|L", "(Et|)*2tL", "EtL*2", "E*2tL",
             "E,t,t|t,L", "E(tt)*2|(t|t)*2L", "((t|)*2)*2", "E|t|t|L", "|EttL", "Ett|L|", "Ettt|(tt|)*2mm|L", "Et*0|ttL",
             "E(t*2|)*3L", "", "EL", "Et*10L", "Et*3*2L"]
    rows = []
    for text, pipeline in itertools.product(texts, (1, 2, 4)):
        for layers, ahead in ((2, None), (4, None), (4, 1), (6, None), (61, 1)):
            row = {"text": text, "pipeline": pipeline, "layers": layers, "ahead": ahead or 0, "taken": True}
            try:
                parsed = layout(text, pipeline)
                parsed.validate_layer_layout(layers, ahead)
                row["stages"] = [[unit.name for unit in parsed.layout[s % pipeline][s // pipeline]]
                                 for s in range(pipeline * parsed.virtual_pipeline_model_parallel_size)]
            except (AssertionError, IndexError, NotImplementedError) as error:
                row["taken"], row["why"] = False, str(error)[:80]
            rows.append(row)
    plans = json.load(open(f"{sys.argv[1]}/layouts.json"))
    for plan in plans:
        parsed = layout(plan["text"], plan["pipeline"])
        parsed.validate_layer_layout(sum(plan["layers"]), None)
        stages = len(plan["layers"])
        got = [sum(unit.name == "decoder" for unit in parsed.layout[s % plan["pipeline"]][s // plan["pipeline"]])
               for s in range(stages)]
        assert got == plan["layers"] and stages == len(parsed.layout) * len(parsed.layout[0]), plan
    keep = [row for row in rows if row["taken"] or row["layers"] == 4 or row["ahead"]]
    path = record.DATA / "megatron_layouts.json"
    path.write_text(json.dumps({"client": "Megatron-LM", "commit": COMMIT, "layouts": keep,
                                "plans": [plan["text"] for plan in plans]}) + "\n")
    print(f"{path}: {len(keep)} layouts, {sum(row['taken'] for row in keep)} taken; {len(plans)} plans")


main()
