"""DeepSpeed (edaa722, 0.19.6): every file goes through DeepSpeedConfig, its class for configurations.

  PYTHONPATH=CHECKOUT python tests/clients/deepspeed_config.py CASES CHECKOUT
"""
import json
import os

import record

COMMIT = "edaa7221267243c7be7fb49c5d5f5c4fb97b4641"


class Rank:
    """What stands for a process group: the first of its ranks."""

    @staticmethod
    def get_rank():
        return 0


class Mesh:
    """What stands for the mesh of devices: the replicas of a plan."""

    def __init__(self, replicas):
        self.replicas = replicas

    def get_data_parallel_world_size(self):
        return self.replicas

    get_sequence_data_parallel_world_size = get_data_parallel_world_size


def main():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    version = open(record.checkout(COMMIT) + "/version.txt").read().strip()
    import deepspeed  # noqa: F401
    from deepspeed.runtime import config as configuration
    from deepspeed.runtime.config import DeepSpeedConfig

    configuration.dist = Rank()
    answers, folders = {}, {}
    for case, folder in record.cases("deepspeed"):
        given = json.loads((folder / "deepspeed.json").read_text())
        replicas = given["train_batch_size"] // given["train_micro_batch_size_per_gpu"] // given["gradient_accumulation_steps"]
        config = DeepSpeedConfig(given, mpu=Mesh(replicas))
        answers[case] = {"stage": int(config.zero_optimization_stage), "train_batch_size": config.train_batch_size,
                         "micro": config.train_micro_batch_size_per_gpu,
                         "accumulation": config.gradient_accumulation_steps, "replicas": replicas,
                         "pipeline": config.pipeline["stages"], "bf16": bool(config.bfloat16_config.enabled),
                         "tensor": config.tensor_parallel_config.autotp_size}
        folders[case] = folder
    record.save("deepspeed", "DeepSpeed", version, COMMIT, answers, folders,
                "DeepSpeedConfig on CPU; no engine was made")


main()
