"""Open MPI: mpirun starts the ranks of a rank file on the slots of this machine.

  python tests/clients/rank_files.py CASES
"""
import re
import subprocess

import record

answers, folders = {}, {}
for case, folder in record.cases("rank_file"):
    path = folder / "rank_file.txt"
    ranks = str(len(path.read_text().splitlines()))
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--rankfile", path, "--host", "localhost:" + ranks, "-np", ranks,
                           "--report-bindings", "true"], check=True, capture_output=True, text=True)
    answers[case] = {"cores": dict(sorted(re.findall(r"rank (\d+) bound to .*?\[core (\d+)\[", done.stderr)))}
    folders[case] = folder
version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout.split()[3]
record.save("rank_file", "Open MPI", version, "", answers, folders)
