"""What every script here shares: the cases that trinity wrote, and the records that the specs read.

A record (tests/data/clients/FORMAT.json) has the client's name, version and commit, and by case the files that the
client took (their text, or of binary files length and Adler-32) with what it made of them.
"""
import json
import pathlib
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "clients"


def cases(format_name):
    """Yields (case, folder) of all cases of a format below the folder that the command line names."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} CASES [CHECKOUT]   (trinity tests/clients/cases.lua CASES writes them)")
    folder = pathlib.Path(sys.argv[1]) / format_name
    found = sorted(path for path in folder.iterdir() if path.is_dir())
    if not found:
        sys.exit(f"no cases in {folder}")
    for path in found:
        yield path.name, path


def checkout(commit):
    """The folder of a client's sources, the command line's second word."""
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} CASES CHECKOUT   (sources at commit {commit})")
    return sys.argv[2]


def files_of(folder):
    """What stands in a case's folder."""
    files = {}
    for path in sorted(folder.iterdir()):
        if path.name == "UNSAID":
            continue
        data = path.read_bytes()
        if path.suffix == ".et":
            files[path.name] = {"bytes": len(data), "adler32": zlib.adler32(data)}
        else:
            files[path.name] = data.decode()
    return files


def model_config(case):
    """The config.json of the network of a case: its name begins with that of the network."""
    for path in (DATA / "models").glob("*.json"):
        if case.split("_")[0] == path.stem.split("_")[0]:
            return json.loads(path.read_text())
    raise KeyError(case)


def save(format_name, client, version, commit, answers, folders, note=""):
    record = {"client": client, "version": version, "commit": commit}
    if note:
        record["note"] = note
    record["cases"] = {case: {"files": files_of(folders[case]), "answer": answers[case]} for case in sorted(answers)}
    path = DATA / f"{format_name}.json"
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    print(f"{path}: {len(answers)} cases taken by {client} {version or commit}")
