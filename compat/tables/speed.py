"""Compares the throughput of tables here with Azurite's, on one machine in one run, by `helenus stress`. By hand:

    compat/tables/azurite python3 compat/tables/speed.py PROGRAM            # ratios
    python3 compat/tables/speed.py PROGRAM --large                          # a million entities, 100,000 upserts

Each line has the operations a second of both and their ratio; the least ratio asked for is 10. Servers take turns, so that none runs beside
another's load."""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
RATIO_MIN = 10


class Server:
    """A server of ours for a while."""

    def __init__(self, program, data, *arguments):
        self.folder = tempfile.mkdtemp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ready = os.path.join(self.folder, "ready")
        data = data.replace("FOLDER", self.folder)
        command = [program, "serve", "--data", data, "--listen", "127.0.0.1:0", "--ready-file", ready]
        command += ["--tables-listen", f"127.0.0.1:{port}", "--tables-dev", *arguments]
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        while not (os.path.exists(ready) and os.path.getsize(ready)):
            if self.process.poll() is not None:
                with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
                    sys.exit("the server did not start:\n" + log.read())
            time.sleep(0.01)
        self.connection = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://127.0.0.1:{port}/{ACCOUNT}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) // 1024


def stress(program, connection, *arguments):
    command = [program, "stress", "tables", "--json", "--seed", "1", *[str(one) for one in arguments]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "AZURE_STORAGE_CONNECTION_STRING": connection})
    if not done.stdout.startswith("{"):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    found = json.loads(done.stdout)
    if found["total"]["failed"] or not found["total"]["operations"]:
        sys.exit(f"{' '.join(command)}: {found['failure']}, {found['total']}")
    return found


def measure(program, connection, connections, table, seconds):
    """Operations a second of inserts, point reads and queries of 100 entities."""
    both = ("--connections", connections)
    timed = ("--seconds", seconds, *both)
    inserts = stress(program, connection, "--table", f"{table}i", "--operation", "insert", *timed)
    written = ("--written", inserts["total"]["entities"])
    reads = stress(program, connection, "--table", f"{table}i", "--operation", "read", *written, *timed)
    if reads["total"]["entities"] != reads["total"]["operations"]:
        sys.exit(f"reads found {reads['total']}")
    hundred = ("--table", f"{table}q", "--rows-per-key", 100)
    stress(program, connection, *hundred, "--operation", "insert", "--batch", 100, "--operations", 100, *both)
    queries = stress(program, connection, *hundred, "--operation", "query", "--written", 10_000, *timed)
    if queries["total"]["entities"] != 100 * queries["total"]["operations"]:
        sys.exit(f"queries found {queries['total']}")
    return {name: one["operations_per_second"] for name, one in (("inserts", inserts), ("point reads", reads), ("queries of 100", queries))}


def compare(program, azurite, seconds):
    bad = 0
    theirs = {connections: measure(program, azurite, connections, f"az{connections}", seconds) for connections in (1, 64)}
    for title, data, connections, arguments, is_judged in (
        ("in memory, one connection", "memory:", 1, (), True),
        ("periodic, one connection", "file:FOLDER/data", 1, ("--durability", "periodic:100"), True),
        ("synced, 64 connections", "file:FOLDER/data", 64, ("--durability", "group"), True),
        ("synced, one connection (the disk's sync)", "file:FOLDER/data", 1, ("--durability", "group"), False),
    ):
        with Server(program, data, *arguments) as server:
            ours = measure(program, server.connection, connections, "ours", seconds)
        print(title)
        for name, rate in ours.items():
            other = theirs[connections][name]
            ratio = rate / max(other, 1)
            verdict = "" if ratio >= RATIO_MIN or not is_judged else f"   below {RATIO_MIN}"
            bad += bool(verdict)
            print(f"  {name:<16} {rate:>9,}/s   Azurite {other:>7,}/s   {ratio:6.1f} times{verdict}", flush=True)
    return bad


def large(program):
    """A million entities in transactions, then 100,000 upserts over 64 connections, both synced."""
    most = 0
    with Server(program, "file:FOLDER/data", "--durability", "group") as server:
        is_over = threading.Event()

        def watch():
            nonlocal most
            while not is_over.wait(0.5):
                most = max(most, server.memory_mib())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            load = ("--table", "large", "--operation", "insert", "--batch", 100, "--connections", 16, "--operations", 10_000)
            loaded = stress(program, server.connection, *load)
            upserts = stress(program, server.connection, "--table", "upserts", "--connections", 64, "--operations", 100_000)
        finally:
            is_over.set()
            watcher.join()
    bad = 0
    for name, found, entities, seconds_max in (("loaded in transactions of 100", loaded, 1_000_000, 180), ("upserts, 64 connections", upserts, 100_000, 60)):
        is_bad = found["total"]["entities"] != entities or found["seconds"] > seconds_max
        bad += is_bad
        print(
            f"{entities:,} entities {name}: {found['seconds']:.1f} s (at most {seconds_max}), {found['entities_per_second']:,}/s, "
            f"p99 {found['total']['p99_millis']:.1f} ms{'   TOO SLOW' if is_bad else ''}"
        )
    print(f"memory of the server at most {most:,} MiB")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    if given.large:
        return 1 if large(given.program) else 0
    azurite = os.environ.get("TABLES_CONNECTION")
    if not azurite:
        sys.exit("run it under compat/tables/azurite")
    return 1 if compare(given.program, azurite, given.seconds) else 0


sys.exit(main())
