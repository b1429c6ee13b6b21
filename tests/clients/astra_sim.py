"""ASTRA-sim (c459ab6, the commit of August 2025): its analytical backend runs our Chakra traces; which ranks finish, and when.

  python tests/clients/astra_sim.py CASES PROGRAM      (AstraSim_Analytical_Congestion_Unaware, built from that commit)

The network is one ring whose links are those of cases.lua's cluster, p100, as far as ASTRA-sim has words for them: one
bandwidth and one latency. Times are its own and are kept, not compared with trinity's.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import record

COMMIT = "c459ab61193bdb5b663ab61d2e923314dae8a77f"
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
SYSTEM = {"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
          "preferred-dataset-splits": 4, **{f"{name}-implementation": ["ring"] for name in COLLECTIVES},
          "collective-optimization": "localBWAware", "local-mem-bw": 1600, "boost-mode": 0}
NETWORK = {"bandwidth_GB_per_s": 12.0, "latency_ns": 10000.0}


def finished(program, folder, ranks):
    """What ASTRA-sim says of each rank: the cycles (of 1 ns) until it finished, and those that communication was not hidden."""
    with tempfile.TemporaryDirectory() as place:
        system, network, memory = (pathlib.Path(place) / name for name in ("system.json", "network.yml", "memory.json"))
        system.write_text(json.dumps(SYSTEM))
        network.write_text(f"topology: [ Ring ]\nnpus_count: [ {ranks} ]\n"
                           f"bandwidth: [ {NETWORK['bandwidth_GB_per_s']} ]\nlatency: [ {NETWORK['latency_ns']} ]\n")
        memory.write_text(json.dumps({"memory-type": "NO_MEMORY_EXPANSION"}))
        told = subprocess.run([program, f"--workload-configuration={folder}/trace",
                               f"--comm-group-configuration={folder}/groups.json", f"--system-configuration={system}",
                               f"--remote-memory-configuration={memory}", f"--network-configuration={network}"],
                              cwd=place, check=True, capture_output=True, text=True, timeout=300)
    found = re.findall(r"sys\[(\d+)\] finished, (\d+) cycles, exposed communication (\d+) cycles", told.stdout)
    return {int(rank): {"cycles": int(cycles), "exposed_communication": int(exposed)} for rank, cycles, exposed in found}


def main():
    program = str(pathlib.Path(record.checkout(COMMIT)).resolve())
    answers, folders = {}, {}
    for case, folder in record.cases("chakra"):
        ranks = len(list(folder.glob("trace.*.et")))
        found = finished(program, folder.resolve(), ranks)
        assert sorted(found) == list(range(ranks)), f"{case}: ranks {sorted(found)} of {ranks} finish"
        answers[case], folders[case] = {"ranks": [found[rank] for rank in range(ranks)], "network": NETWORK}, folder
    record.save("astra_sim", "ASTRA-sim", "analytical backend, congestion unaware", COMMIT, answers, folders,
                "every rank finishes; cycles of 1 ns on a ring of one bandwidth and latency")


main()
