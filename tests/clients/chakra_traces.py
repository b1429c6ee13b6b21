"""Chakra (21585d8): traces are read by its own protolib and schema, and nodes counted.

  python tests/clients/chakra_traces.py CASES CHECKOUT      (grpcio-tools compiles the schema)
"""
import collections
import json
import sys
import tempfile

import google.protobuf
import record

COMMIT = "21585d8f2d65603d791d2121e3d4632351120262"


def load(root):
    from grpc_tools import protoc

    place = tempfile.mkdtemp()
    folder = f"{root}/schema/protobuf"
    assert protoc.main(["", f"-I{folder}", f"--python_out={place}", f"{folder}/et_def.proto"]) == 0
    sys.path[:0] = [place, f"{root}/src/third_party/utils"]
    import et_def_pb2
    import protolib

    return et_def_pb2, protolib


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
            file = protolib.openFileRd(str(folder / f"trace.{rank}.et"))
            head = schema.GlobalMetadata()
            protolib.decodeMessage(file, head)
            assert head.version == "1.0.0"
            nodes = []
            node = schema.Node()
            while protolib.decodeMessage(file, node):
                nodes.append(node)
                node = schema.Node()
            kinds = collections.Counter(schema.NodeType.Name(node.type) for node in nodes)
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
            ranks.append({"nodes": len(nodes), **kinds,
                          "computation_micros": sum(n.duration_micros for n in nodes if n.type == schema.COMP_NODE)})
        assert sent == received and all(times == 1 for times in sent.values()), f"{case}: messages do not pair"
        for (group, kind, size), times in joined.items():
            members = len(groups[group]) if group else count
            assert times % members == 0, f"{case}: group {group} meets {times} times with {members} ranks"
        answers[case], folders[case] = {"ranks": ranks, "messages": len(sent)}, folder
    record.save("chakra", "Chakra", f"1.0.0, protobuf {google.protobuf.__version__}", COMMIT, answers, folders,
                "read by protolib with the schema's classes; ASTRA-sim was not built")


main()
