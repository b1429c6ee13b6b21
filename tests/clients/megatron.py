"""Megatron-LM (d98e8a64): every array of arguments goes through its own argument parser, every layout through its own
parser and validator. megatron.core needs no CUDA for these; what its package imports beside is not run.

  python tests/clients/megatron.py CASES CHECKOUT
"""
import importlib.util
import subprocess
import sys
import types

import record

COMMIT = "d98e8a64ddf34856e74b24714e3bedb2f5a39553"


def load_layout(root):
    """PipelineParallelLayerLayout from its file, with the modules that it imports around it stubbed."""
    for name in ("megatron", "megatron.core", "megatron.core.transformer"):
        sys.modules[name] = types.ModuleType(name)
    state = types.ModuleType("megatron.core.parallel_state")
    sys.modules["megatron.core"].parallel_state = state
    sys.modules["megatron.core.parallel_state"] = state
    utils = types.ModuleType("megatron.core._rank_utils")
    utils.safe_get_rank = lambda: 0
    sys.modules["megatron.core._rank_utils"] = utils
    for name in ("enums", "pipeline_parallel_layer_layout"):
        full = f"megatron.core.transformer.{name}"
        spec = importlib.util.spec_from_file_location(full, f"{root}/megatron/core/transformer/{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules["megatron.core.transformer.pipeline_parallel_layer_layout"].PipelineParallelLayerLayout


def words_of(path):
    """The array as bash reads it."""
    script = f'source "{path}"; printf "%s\\n" "${{MODEL_PARALLEL_ARGS[@]}}"'
    return subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


def declared_flags(root):
    """Names of all flags that arguments.py declares by hand or makes of the fields of its configurations."""
    import re

    text = open(f"{root}/megatron/training/arguments.py").read()
    flags = set(re.findall(r"'(--[a-z0-9-]+)'", text)) | set(re.findall(r'"(--[a-z0-9-]+)"', text))
    for name in ("core/transformer/transformer_config.py", "core/model_parallel_config.py",
                 "core/distributed/distributed_data_parallel_config.py", "core/optimizer/optimizer_config.py",
                 "training/config/training_config.py", "training/config/common_config.py"):
        try:
            fields = re.findall(r"^    ([a-z0-9_]+) *:", open(f"{root}/megatron/{name}").read(), re.M)
        except FileNotFoundError:
            continue
        flags |= {"--" + field.replace("_", "-") for field in fields}
    return flags


def main():
    root = record.checkout(COMMIT)
    layout = load_layout(root)
    flags = declared_flags(root)
    answers, folders = {}, {}
    for case, folder in record.cases("megatron"):
        words = words_of(folder / "megatron.sh")
        values, flag = {}, None
        for word in words:
            if word.startswith("--"):
                flag = word
                assert flag in flags, f"{case}: Megatron-LM has no flag {flag}"
                values[flag] = True
            else:
                values[flag] = word
        answer = {"arguments": values}
        text = values.get("--pipeline-model-parallel-layout")
        if text:
            pipeline = int(values["--pipeline-model-parallel-size"])
            parsed = layout(text, pipeline)
            config = record.model_config(case)
            parsed.validate_layer_layout(config.get("num_hidden_layers", config.get("n_layer")), None)
            answer["virtual"] = parsed.virtual_pipeline_model_parallel_size
            answer["ranks"] = [[[unit.name for unit in chunk] for chunk in rank] for rank in parsed.layout]
        answers[case], folders[case] = answer, folder
    record.save("megatron", "Megatron-LM", "", COMMIT, answers, folders,
                "layouts: its parser and validator were run; flags: their names stand in its argument declarations, "
                "its whole argument check needs CUDA and was not run")
    probe(layout)


def probe(layout):
    """Layouts of all kinds, and whether Megatron-LM takes them: what our own reader is compared with."""
    import itertools
    import json

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
    keep = [row for row in rows if row["taken"] or row["layers"] == 4 or row["ahead"]]
    path = record.DATA / "megatron_layouts.json"
    path.write_text(json.dumps({"client": "Megatron-LM", "commit": COMMIT, "layouts": keep}) + "\n")
    print(f"{path}: {len(keep)} layouts, {sum(row['taken'] for row in keep)} taken")


main()
