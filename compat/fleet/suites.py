"""The drivers' suites against nodes of a fleet of four: what passes and what fails is to be as against a server that is alone.

    suites.py PROGRAM [--suites NAME,…] [--against alone,edge,owner,N,…] [--nodes N] [--log-folder FOLDER]

It runs under compat/bucket/with, which names a bucket. The nodes are 127.0.0.4 and on, at port 9042, which the suites of scylla and gocql
assume. The server that is alone, over another prefix of the bucket, has the same addresses and is ended before the fleet starts.
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
NUMBERS = [4, 5, 6, 7]
PORT = 9042
SUITE_SECONDS_MAX = 1200

#: The suites: a command for the addresses of all nodes, of which the first is asked, as HOST:PORT and as HOST.
SUITES = {
    "rust": lambda asked, _: [os.environ["HELENUS_COMPAT_PROGRAM"], "driver", "--target", asked[0]],
    "python": lambda asked, _: [HERE / "../drivers/python/run", asked[0]],
    "node": lambda asked, _: [HERE / "../drivers/node/run", asked[0]],
    "java": lambda asked, _: [HERE / "../drivers/java/run", asked[0]],
    "go": lambda asked, _: [HERE / "../drivers/go/run", asked[0]],
    "scylla": lambda asked, _: [HERE / "../suites/scylla", *asked[:3]],
    "gocql-4": lambda _, hosts: [HERE / "../suites/gocql", ",".join(hosts), "4", "no-compression"],
    "gocql-5": lambda _, hosts: [HERE / "../suites/gocql", ",".join(hosts), "5", "lz4"],
    "gocql-3": lambda _, hosts: [HERE / "../suites/gocql", ",".join(hosts), "3", "snappy"],
}

#: Tests that say something else of four nodes than of one, and why.
KNOWN = {
    "rust": {"metadata": "it counts one node"},
    "scylla": {
        f"session::startup_options::{name}": "its proxies stand before three nodes, and it counts the connections to all"
        for name in ("driver_config_is_sent_only_on_the_control_connection_and_can_be_disabled", "session_id_is_sent_on_every_connection")
    },
    "gocql-3": {"TestTokenAwareConnPool": "version 3 does not tell where the partition key is, and the driver does not know the new table yet"},
}


class Alone(Node):
    """A server that is no node of a fleet, at all addresses."""

    def command(self):
        command = super().command()
        cut = command.index("--fleet-listen")
        more = [part for number in NUMBERS[1:] for part in ("--listen", f"127.0.0.{number}:{PORT}")]
        return command[:cut] + command[cut + 4 :] + more


def attempt(name, nodes, is_alone, log):
    """Runs a suite. Returns its last line, and the names of what failed."""
    begun = time.monotonic()
    hosts = [node.address for node in nodes]
    # A server that is alone is one node to drivers, whatever addresses it has.
    command = [str(part) for part in SUITES[name]([f"{host}:{PORT}" for host in hosts], hosts[:1] if is_alone else hosts)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SUITE_SECONDS_MAX)
    log.write_text(done.stdout)
    lines = done.stdout.strip().splitlines() or [""]
    told = next((line for line in reversed(lines) if re.search(r"\d+ passed", line)), f"no result, exit code {done.returncode}")
    failed = {line.removeprefix("FAIL ") for line in lines if line.startswith("FAIL ")}
    return f"{told}; {time.monotonic() - begun:.0f} s", failed


def try_all(nodes, which, suites, folder, found):
    """Runs suites against a node, the first one, and prints what they say."""
    clean(nodes[0])
    for name in suites:
        told, failed = attempt(name, nodes, which == "alone", folder / f"{which}-{name}.log")
        known = {} if which == "alone" else KNOWN.get(name, {})
        tests = {re.sub(r": .*", "", line) for line in failed}
        found[which, name] = "no result" if "no result" in told else tests - known.keys()
        print(f"{which}: {name}: {told}", flush=True)
        for line in sorted(failed):
            print(f"  FAIL {line[:300]}{''.join(f' (known: {why})' for test, why in known.items() if test in tests and line.startswith(test))}", flush=True)


def clean(node):
    """Drops what earlier suites have left: some drivers cannot read each other's types."""
    session = node.session()
    for row in session.execute("SELECT keyspace_name FROM system_schema.keyspaces"):
        if not row.keyspace_name.startswith("system"):
            session.execute(f'DROP KEYSPACE "{row.keyspace_name}"')
    node.clusters.pop().shutdown()


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
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--log-folder")
    options = parser.parse_args()
    del NUMBERS[options.nodes :]
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
