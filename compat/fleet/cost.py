"""What it costs to ask a node that does not own the stores: processor time of all servers for a point read and an insert, and the time to its answer.

    cost.py PROGRAM [--rounds N] [--operations N]

It runs under compat/bucket/with, which names a bucket. In each round one client, with one request in flight, asks a server that is alone, the owner of
a fleet of two nodes, and its other node, one after the other. Each figure is the median of its rounds.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from clients import KEYSPACE
from nodes import Node, free_ports

TABLE = "CREATE TABLE fleet.cost (k int PRIMARY KEY, v text)"
STATEMENTS = {
    "point read": "SELECT v FROM fleet.cost WHERE k = ?",
    "insert": "INSERT INTO fleet.cost (k, v) VALUES (?, 'a value of some hundred bytes: it is neither long nor short, as values are, and ends with this')",
}
ROWS = 1000

#: Bounds of the issue: times the processor time of a server that is alone, and seconds that an answer takes longer.
CPU_RATIO_MAX = 3.0
LATER_SECONDS_MAX = 0.0005


class Alone(Node):
    """A server that is no node of a fleet."""

    def command(self):
        command = super().command()
        cut = command.index("--fleet-listen")
        return command[:cut] + command[cut + 4 :]


def processor_seconds(nodes):
    ticks = 0
    for node in nodes:
        fields = Path(f"/proc/{node.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(session, prepared, nodes, operations):
    """Processor seconds of an operation, and the median seconds to its answer."""
    before, spans = processor_seconds(nodes), []
    for number in range(operations):
        begun = time.perf_counter()
        session.execute(prepared, (number % ROWS,))
        spans.append(time.perf_counter() - begun)
    return (processor_seconds(nodes) - before) / operations, statistics.median(spans)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--operations", type=int, default=4000)
    options = parser.parse_args()
    bucket = os.environ["HELENUS_COMPAT_BUCKET"]
    with tempfile.TemporaryDirectory() as folder:
        nodes = [Node(options.program, number, free_ports(3), Path(folder), bucket) for number in (1, 2)]
        nodes[1].cql = nodes[0].cql
        alone = Alone(options.program, 3, free_ports(3), Path(folder), f"{bucket}-alone")
        try:
            for node in (*nodes, alone):
                node.start()
            return compare(nodes, alone, options)
        finally:
            for node in (*nodes, alone):
                for cluster in node.clusters:
                    cluster.shutdown()
                if node.process:
                    node.process.kill()


def compare(nodes, alone, options):
    owner = next(node for node in nodes if node.owns())
    edge = next(node for node in nodes if node is not owner)
    asked = {"alone": (alone.session(), [alone]), "owner": (owner.session(), nodes), "other node": (edge.session(), nodes)}
    for name in ("alone", "owner"):
        for text in (KEYSPACE, TABLE):
            asked[name][0].execute(text)
    found = {}
    for _ in range(options.rounds):
        for what, text in reversed(STATEMENTS.items()):
            for name, (session, servers) in asked.items():
                prepared = session.prepare(text)
                measure(session, prepared, servers, options.operations // 10)
                found.setdefault((what, name), []).append(measure(session, prepared, servers, options.operations))
    wrong = 0
    for what in STATEMENTS:
        cpu = {name: statistics.median(cpu for cpu, _ in found[what, name]) for name in asked}
        span = {name: statistics.median(span for _, span in found[what, name]) for name in asked}
        for name in asked:
            ratio = cpu[name] / cpu["alone"]
            print(f"{what}, {name}: {cpu[name] * 1e6:.1f} µs of processor time ({ratio:.2f} ×), p50 {span[name] * 1e6:.0f} µs")
        later = span["other node"] - span["alone"]
        if what == "point read" and (cpu["other node"] > CPU_RATIO_MAX * cpu["alone"] or later > LATER_SECONDS_MAX):
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
