"""The drivers' suites against nodes of a fleet of four: what passes and what fails is to be as against a server that is alone.

    suites.py PROGRAM [--suites NAME,…] [--against alone,edge,owner,N,…] [--log-folder FOLDER]

It runs under compat/bucket/with, which names a bucket. The nodes are 127.0.0.4 to 127.0.0.7 at port 9042, which the suites of scylla and gocql assume.
The server that is alone, over another prefix of the bucket, has the same addresses and is ended before the fleet starts.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nodes import Node, free_ports

HERE = Path(__file__).resolve().parent
NUMBERS = (4, 5, 6, 7)
PORT = 9042
SUITE_SECONDS_MAX = 1200

#: The suites: a command for the addresses of nodes, of which the first is asked.
SUITES = {
    "rust": lambda asked, *_: [os.environ["HELENUS_COMPAT_PROGRAM"], "driver", "--target", asked],
    "python": lambda asked, *_: [HERE / "../drivers/python/run", asked],
    "node": lambda asked, *_: [HERE / "../drivers/node/run", asked],
    "java": lambda asked, *_: [HERE / "../drivers/java/run", asked],
    "go": lambda asked, *_: [HERE / "../drivers/go/run", asked],
    "scylla": lambda *all_nodes: [HERE / "../suites/scylla", *all_nodes[:3]],
    "gocql-4": lambda asked, *_: [HERE / "../suites/gocql", asked.split(":")[0], "4", "no-compression"],
    "gocql-5": lambda asked, *_: [HERE / "../suites/gocql", asked.split(":")[0], "5", "lz4"],
    "gocql-3": lambda asked, *_: [HERE / "../suites/gocql", asked.split(":")[0], "3", "snappy"],
}


class Alone(Node):
    """A server that is no node of a fleet, at all addresses."""

    def command(self):
        command = super().command()
        cut = command.index("--fleet-listen")
        more = [part for number in NUMBERS[1:] for part in ("--listen", f"127.0.0.{number}:{PORT}")]
        return command[:cut] + command[cut + 4 :] + more


def attempt(name, nodes, log):
    """Runs a suite. Returns its last line, and the names of what failed."""
    begun = time.monotonic()
    command = [str(part) for part in SUITES[name](*[f"{node.address}:{PORT}" for node in nodes])]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SUITE_SECONDS_MAX)
    log.write_text(done.stdout)
    lines = done.stdout.strip().splitlines() or [""]
    told = next((line for line in reversed(lines) if re.search(r"\d+ passed", line)), f"no result, exit code {done.returncode}")
    failed = {line.removeprefix("FAIL ") for line in lines if line.startswith("FAIL ")}
    return f"{told}; {time.monotonic() - begun:.0f} s", failed


def try_all(nodes, which, suites, folder, found):
    """Runs suites against a node, the first one, and prints what they say."""
    for name in suites:
        told, failed = attempt(name, nodes, folder / f"{which}-{name}.log")
        found[which, name] = (re.sub(r"; \d+ s$", "", told), {line.split(":")[0] for line in failed})
        print(f"{which}: {name}: {told}", flush=True)
        for line in sorted(failed):
            print(f"  FAIL {line[:300]}", flush=True)


def end(nodes):
    for node in nodes:
        if node.process and node.process.poll() is None:
            node.process.kill()
            node.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--suites", default=",".join(SUITES))
    parser.add_argument("--against", default="alone,edge,owner")
    parser.add_argument("--log-folder")
    options = parser.parse_args()
    bucket, suites, against = os.environ["HELENUS_COMPAT_BUCKET"], options.suites.split(","), options.against.split(",")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(options.log_folder or folder)
        folder.mkdir(parents=True, exist_ok=True)
        if "alone" in against:
            alone = [Alone(options.program, number, free_ports(3), folder, f"{bucket}-alone") for number in NUMBERS]
            alone[0].cql = PORT
            try:
                alone[0].start()
                try_all(alone, "alone", suites, folder, found)
            finally:
                end(alone)
        nodes = [Node(options.program, number, free_ports(3), folder, bucket) for number in NUMBERS]
        try:
            for node in nodes:
                node.cql = PORT
                node.start()
            for which in against:
                if which != "alone":
                    try_all(asked_first(nodes, which), which, suites, folder, found)
        finally:
            end(nodes)
    return compare(found, suites, against)


def asked_first(nodes, which):
    """The nodes in the order in which a suite is to know them."""
    owner = next(node for node in nodes if node.owns())
    edges = [node for node in nodes if node is not owner]
    if which == "owner":
        return [owner, *edges]
    if which == "edge":
        return [edges[0], *edges[1:], owner]
    first = next(node for node in nodes if node.number == int(which))
    return [first, *(node for node in nodes if node is not first)]


def compare(found, suites, against):
    """Prints what differs from the first of those that were asked. Returns 1 if anything does."""
    differs = 0
    for name in suites:
        for which in against[1:]:
            if found[which, name] != found[against[0], name]:
                differs += 1
                print(f"{name}: {which} differs from {against[0]}: {found[which, name]}, {found[against[0], name]}")
    print(f"{differs} of {len(suites) * (len(against) - 1)} differ")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
