"""trinity as a gymnasium.Env, by `trinity serve` (trinity help serving).

  python3 tests/clients/gymnasium_env.py build/trinity check   # gymnasium.utils.env_checker
  python3 tests/clients/gymnasium_env.py build/trinity train   # Stable-Baselines3's PPO
"""
import json
import subprocess
import sys

import gymnasium
import numpy as np


class TrinityEnv(gymnasium.Env):
    """One environment of trinity.env: actions are Discrete, observations one vector."""

    def __init__(self, program, problem, options=None):
        self.server = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.problem, self.options = problem, {"strict": False, **(options or {}), "num_envs": 1}
        made = self.ask("env.reset", problem=problem, options=self.options, seed=0)
        self.action_space = gymnasium.spaces.Discrete(made["num_actions"])
        size = len(self.vector(made["observation"]))
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def ask(self, method, **params):
        """The result of a request; an error of the program is raised."""
        self.server.stdin.write(json.dumps({"method": method, "params": params}) + "\n")
        self.server.stdin.flush()
        answer = json.loads(self.server.stdout.readline())
        if "error" in answer:
            raise ValueError(answer["error"]["message"])
        return answer["result"]

    def vector(self, observation):
        parts = [np.ravel(observation[name]) for name in ("load", "memory", "placement", "mask")]
        self.mask = np.array(observation["mask"][0], dtype=bool)
        return np.concatenate(parts + [observation.get("current", [])]).astype(np.float32)

    def action_masks(self):
        """What sb3_contrib.MaskablePPO asks for."""
        return self.mask

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        made = self.ask("env.reset", seed=int(self.np_random.integers(2**31)))
        return self.vector(made["observation"]), {}

    def step(self, action):
        answer = self.ask("env.step", actions=[int(action)])
        ended = answer["done"][0]
        truncated = ended and self.options.get("actions") == "move"
        info = answer["ended"][0] if ended else {}
        return self.vector(answer["observation"]), answer["reward"][0], ended and not truncated, truncated, info

    def close(self):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait()


def main(program, what):
    problem = {"model": "alexnet", "batch_size": 8, "cluster": "p100x2"}
    env = TrinityEnv(program, problem, {"groups": 8})
    if what == "check":
        from gymnasium.utils.env_checker import check_env
        check_env(env, skip_render_check=True)
        print("env_checker: passed")
    else:
        from stable_baselines3 import PPO
        PPO("MlpPolicy", env, n_steps=64, batch_size=64, learning_rate=1e-2, seed=1, device="cpu").learn(512)
        best = env.ask("env.best")
        print(f"PPO: {best['step_time_s']:.4g} s, bound {env.ask('bounds', problem=problem)['step_time_s']:.4g} s")
    env.close()


if __name__ == "__main__":
    main(*sys.argv[1:3])
