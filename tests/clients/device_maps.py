"""accelerate: check_device_map on models of transformers on the meta device, weights that are tied together, blocks that
are never split whole.

  python tests/clients/device_maps.py CASES
"""
import json

import accelerate
import record
import transformers
from accelerate import init_empty_weights
from accelerate.utils import check_device_map, find_tied_parameters
from transformers import AutoConfig, AutoModelForCausalLM


def device_of(name, device_map):
    best = max((key for key in device_map if name == key or name.startswith(key + ".") or key == ""), key=len)
    return device_map[best]


def main():
    answers, folders = {}, {}
    for case, folder in record.cases("accelerate"):
        with init_empty_weights():
            model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**record.model_config(case)))
        model.tie_weights()
        device_map = json.loads((folder / "device_map.json").read_text())
        check_device_map(model, device_map)
        modules = dict(model.named_modules())
        unknown = [key for key in device_map if key not in modules]
        assert not unknown, f"{case}: no modules {unknown}"
        tied = find_tied_parameters(model)
        for group in tied:
            devices = {device_of(name, device_map) for name in group}
            assert len(devices) == 1, f"{case}: tied {group} on {devices}"
        whole = set(model._no_split_modules or [])
        for path, module in modules.items():
            if type(module).__name__ in whole:
                names = [f"{path}.{name}" for name, _ in module.named_parameters()]
                assert len({device_of(name, device_map) for name in names}) == 1, f"{case}: {path} is cut"
        answers[case] = {"parameters": len(list(model.parameters())), "tied": sorted(map(sorted, tied)),
                         "whole": sorted(whole), "devices": sorted({str(d) for d in device_map.values()})}
        folders[case] = folder
    record.save("accelerate", "accelerate", f"{accelerate.__version__}, transformers {transformers.__version__}", "",
                answers, folders)


main()
