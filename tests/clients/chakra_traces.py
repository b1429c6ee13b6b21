"""Chakra (21585d8): traces are read by its own protolib and schema, and nodes counted; its generator's own traces are kept
with the counts of its reader, for ours.

  python tests/clients/chakra_traces.py CASES CHECKOUT      (grpcio-tools compiles the schema)
"""
import collections
import contextlib
import importlib
import json
import pathlib
import sys
import tempfile

import google.protobuf
import record

COMMIT = "21585d8f2d65603d791d2121e3d4632351120262"


def load(root):
    from grpc_tools import protoc

    place = tempfile.mkdtemp()
    folder, compiled = f"{root}/schema/protobuf", pathlib.Path(place) / "chakra" / "schema" / "protobuf"
    compiled.mkdir(parents=True)
    assert protoc.main(["", f"-I{folder}", f"--python_out={compiled}", f"{folder}/et_def.proto"]) == 0
    (compiled.parent.parent / "src").symlink_to(pathlib.Path(root).resolve() / "src")
    sys.path[:0] = [place]
    return (importlib.import_module("chakra.schema.protobuf.et_def_pb2"),
            importlib.import_module("chakra.src.third_party.utils.protolib"))


def nodes_of(schema, protolib, path):
    file = protolib.openFileRd(str(path))
    head = schema.GlobalMetadata()
    protolib.decodeMessage(file, head)
    assert head.version == "1.0.0"
    nodes, node = [], schema.Node()
    while protolib.decodeMessage(file, node):
        nodes.append(node)
        node = schema.Node()
    return nodes


def kinds_of(schema, nodes):
    return dict(collections.Counter(schema.NodeType.Name(node.type) for node in nodes))


def own(schema, protolib):
    """Traces of Chakra's generator for two ranks, in hexadecimal digits, with what its reader counts."""
    generator = importlib.import_module("chakra.src.generator.generator")
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        generator.one_metadata_node_all_types(2)
        generator.one_remote_mem_load_node(2, 1024)
        generator.one_remote_mem_store_node(2, 1024)
        generator.one_comp_node(2, 5)
        generator.two_comp_nodes_independent(2, 5)
        generator.two_comp_nodes_dependent(2, 5)
        for kind in ("allreduce", "alltoall", "allgather", "reducescatter", "broadcast"):
            getattr(generator, f"one_comm_coll_node_{kind}")(2, 65536)
        generator.one_comm_coll_node_barrier(2)
        generator.one_comm_send_node(2, 1024)
        traces = {}
        for path in sorted(pathlib.Path(place).glob("*.et")):
            nodes = nodes_of(schema, protolib, path)
            traces[path.name] = {"hex": path.read_bytes().hex(), "kinds": kinds_of(schema, nodes),
                                 "edges": sum(len(node.data_deps) for node in nodes),
                                 "micros": sum(node.duration_micros for node in nodes)}
    return traces


def value(node, name):
    for attr in node.attr:
        if attr.name == name:
            return getattr(attr, attr.WhichOneof("value"))
    return None


def main():
    schema, protolib = load(record.checkout(COMMIT))
    answers, folders = {}, {}
    for case, folder in record.cases("chakra"):
        ranks, sent, received, joined = [], collections.Counter(), collections.Counter(), collections.Counter()
        groups = json.loads((folder / "groups.json").read_text())
        count = len(list(folder.glob("trace.*.et")))
        for rank in range(count):
            nodes = nodes_of(schema, protolib, folder / f"trace.{rank}.et")
            ids = {node.id for node in nodes}
            assert len(ids) == len(nodes), f"{case}: ids repeat"
            done, waiting = set(), {node.id: set(node.data_deps) for node in nodes}
            assert all(deps <= ids for deps in waiting.values()), f"{case}: unknown dependencies"
            while waiting:
                ready = [i for i, deps in waiting.items() if deps <= done]
                assert ready, f"{case}: a circle of dependencies"
                done.update(ready)
                for i in ready:
                    del waiting[i]
            for node in nodes:
                if node.type == schema.COMM_SEND_NODE:
                    assert value(node, "comm_src") == rank
                    sent[value(node, "comm_src"), value(node, "comm_dst"), value(node, "comm_tag")] += 1
                if node.type == schema.COMM_RECV_NODE:
                    assert value(node, "comm_dst") == rank
                    received[value(node, "comm_src"), value(node, "comm_dst"), value(node, "comm_tag")] += 1
                if node.type == schema.COMM_COLL_NODE:
                    group = value(node, "pg_name")
                    assert group == "" or rank in groups[group], f"{case}: rank {rank} is not in group {group}"
                    joined[group, value(node, "comm_type"), value(node, "comm_size")] += 1
            ranks.append({"nodes": len(nodes), **kinds_of(schema, nodes), "edges": sum(len(n.data_deps) for n in nodes),
                          "computation_micros": sum(n.duration_micros for n in nodes if n.type == schema.COMP_NODE)})
        assert sent == received and all(times == 1 for times in sent.values()), f"{case}: messages do not pair"
        for (group, kind, size), times in joined.items():
            members = len(groups[group]) if group else count
            assert times % members == 0, f"{case}: group {group} meets {times} times with {members} ranks"
        answers[case], folders[case] = {"ranks": ranks, "messages": len(sent)}, folder
    record.save("chakra", "Chakra", f"1.0.0, protobuf {google.protobuf.__version__}", COMMIT, answers, folders,
                "read by protolib with the schema's classes")
    path = record.DATA / "chakra_own.json"
    path.write_text(json.dumps({"client": "Chakra's generator", "version": "1.0.0", "commit": COMMIT,
                                "traces": own(schema, protolib)}, indent=1, sort_keys=True) + "\n")
    print(path)


main()
