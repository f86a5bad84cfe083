"""Runs a command of `compat` that kills its server against a fleet: its clients ask a node that does not own the stores, and it kills the owner.

    through.py PROGRAM COMPAT [--nodes N] [--keep FOLDER] COMMAND [ARGUMENT…]

It runs under compat/bucket/with, which names a bucket. COMMAND is crash, linear, partitions or feed. The command starts `as-server` for its server:
that asks here for an address, and its end is the owner's, by SIGKILL. At the next start the killed node is started again. src/through.rs says what
clients do meanwhile. At the end it prints how often the owner was killed, and how long it took until another node owned the stores.
"""

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nodes import Node, free_ports, owner_of

HERE = Path(__file__).resolve().parent

#: Seconds until a node owns the stores after the owner was killed.
OWNED_SECONDS_MAX = 20


class Member(Node):
    """A node with the arguments that a command gives to its server."""

    more = ()

    def command(self):
        return [*super().command(), *self.more]


class Fleet:
    """The nodes of one command."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.data, self.nodes, self.killed = None, [], None
        self.chance = random.Random(1)
        #: Seconds of each takeover.
        self.takeovers = []

    def serve(self, arguments):
        """Starts what does not run. Returns the address of a node that does not own the stores."""
        data, more = arguments[1], arguments[4:]
        assert arguments[0] == "--data" and arguments[2] == "--listen", arguments
        if data != self.data:
            self.end()
            self.data = data
            self.nodes = [Member(self.options.program, number, free_ports(3), self.folder, data) for number in range(1, self.options.nodes + 1)]
        for node in self.nodes:
            node.more = more
            if node.process is None or node.process.poll() is not None:
                node.start()
        owner = self.owner()
        node = self.chance.choice([node for node in self.nodes if node is not owner])
        return f"{node.address}:{node.cql}"

    def owner(self):
        """The node that owns the stores, once one does."""
        begun = time.monotonic()
        while time.monotonic() - begun < OWNED_SECONDS_MAX:
            owner = owner_of([node for node in self.nodes if node.process.poll() is None])
            if owner:
                return owner
            time.sleep(0.01)
        raise SystemExit("no node owns the stores")

    def kill_owner(self):
        owner = self.owner()
        owner.signal(signal.SIGKILL)
        owner.end()
        begun = time.monotonic()
        self.owner()
        self.takeovers.append(time.monotonic() - begun)

    def end(self):
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.process.kill()
                node.process.wait()

    def panics(self):
        return sum(log.read_text(errors="replace").count("panicked at") for log in self.folder.glob("log-*"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("compat")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--keep")
    options, options.command = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(options.keep or folder)
        folder.mkdir(parents=True, exist_ok=True)
        fleet = Fleet(options, folder)
        try:
            code = run(options, folder, fleet)
        finally:
            fleet.end()
        if fleet.takeovers:
            p50, longest = statistics.median(fleet.takeovers), max(fleet.takeovers)
            print(f"{options.nodes} nodes: {len(fleet.takeovers)} owners killed; another owned the stores after {p50:.2f} s (p50), {longest:.2f} s at most")
        panics = fleet.panics()
        print(f"{panics} panics")
        return code or (1 if panics else 0)


def run(options, folder, fleet):
    """Runs the command, and does what its servers ask for. Returns its exit code."""
    place = folder / "socket"
    place.unlink(missing_ok=True)
    more = {"HELENUS_BIN": str(HERE / "as-server"), "HELENUS_COMPAT_FLEET": str(place)}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        listener.settimeout(0.2)
        command = subprocess.Popen([options.compat, *options.command], env=os.environ | more)
        try:
            while command.poll() is None:
                try:
                    asked, _ = listener.accept()
                except TimeoutError:
                    continue
                with asked:
                    asked.settimeout(None)
                    lines = asked.makefile("rw")
                    print(fleet.serve(json.loads(lines.readline())), file=lines, flush=True)
                    # Its end.
                    lines.readline()
                if command.poll() is None:
                    fleet.kill_owner()
        finally:
            command.kill()
        return command.wait()


if __name__ == "__main__":
    sys.exit(main())
