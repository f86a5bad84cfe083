"""Nodes of a fleet that fail while clients write, read and change the schema through all of them.

    faults.py PROGRAM [--nodes N] [--rounds N] [--seed N] [--schema-changes N]

It runs under compat/bucket/with, which names a bucket. Each node is a process at an address of its own, 127.0.0.1 and up. Clients of the Python
driver are connected to one node each, and go on through every fault:

    registers    a client writes rising numbers under its own key; what it reads back is the last one that was acknowledged, or a later one
    counters     each acknowledged increment counts once; one without an answer counts at most once
    conditions   a chain of numbers by IF v = n: no number is given to two clients
    batches      two rows by one logged batch: both have the same number
    schema       a table made through one node is written through every other one at once

A round picks a fault by its seed: the owner or an edge is killed, stopped for 1.7 or 6 seconds, or ended and started again.

At last two nodes of a fleet of their own: the owner is killed. The other one refuses QUORUM, and writes at any level, until the dead node has no
seats any more; it reads at ONE as soon as it is the owner.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from cassandra import ConsistencyLevel, OperationTimedOut, ReadFailure, ReadTimeout, Unavailable, WriteFailure, WriteTimeout
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

#: Seconds until the next acknowledged write after a fault of one node: the issue's bound.
NEXT_WRITE_SECONDS_MAX = 5.0

#: Seconds for which a node keeps its seats after it was heard last.
SEATED_SECONDS = 10.0

#: The token of the admin ports.
TOKEN = "of-a-test"

#: Seconds until a node serves.
READY_SECONDS_MAX = 60

#: Errors after which a write may have happened.
UNKNOWN = (WriteTimeout, WriteFailure, OperationTimedOut, NoHostAvailable, ConnectionException)

#: Errors after which nothing happened.
NOTHING = (Unavailable,)

KEYSPACE = "CREATE KEYSPACE fleet WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}"
TABLES = [
    "CREATE TABLE fleet.registers (k int PRIMARY KEY, v int)",
    "CREATE TABLE fleet.counters (k int PRIMARY KEY, c counter)",
    "CREATE TABLE fleet.chain (k int PRIMARY KEY, v int, who int)",
    "CREATE TABLE fleet.pairs (k int, c int, v int, PRIMARY KEY (k, c))",
]


def free_ports(count):
    """Ports that are free on all addresses of the nodes."""
    while True:
        first = random.randrange(20000, 30000)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("", port))
        except OSError:
            continue
        return range(first, first + count)


class Node:
    """One process of the fleet."""

    def __init__(self, program, number, ports, folder, bucket):
        self.program, self.number, self.folder, self.bucket = program, number, folder, bucket
        self.address = f"127.0.0.{number}"
        self.cql, self.fleet, self.admin = ports
        self.process = None
        self.clusters = []
        #: Where the log of the process that runs begins.
        self.begins = 0

    @property
    def log(self):
        return self.folder / f"log-{self.number}"

    def command(self):
        command = [self.program, "--data", self.bucket, "--listen", f"{self.address}:{self.cql}"]
        command += ["--fleet-listen", f"{self.address}:{self.fleet}", "--node", f"n{self.number}"]
        return [*command, "--admin-listen", f"{self.address}:{self.admin}", "--admin-token", TOKEN]

    def start(self):
        ready = self.folder / f"ready-{self.number}"
        ready.unlink(missing_ok=True)
        log = self.log.open("a")
        self.begins = self.log.stat().st_size
        command = [*self.command(), "--ready-file", str(ready)]
        self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        begun = time.monotonic()
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() - begun > READY_SECONDS_MAX:
                raise SystemExit(f"node {self.number} does not serve:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def status(self):
        """What `helenus status` prints of it."""
        command = [self.program, "status", "--json", "--admin-listen", f"{self.address}:{self.admin}"]
        return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    def forget(self, name):
        """Asks it to forget a node. Returns the status of the answer."""
        url = f"http://{self.address}:{self.admin}/api/nodes/{name}"
        request = urllib.request.Request(url, method="DELETE", headers={"Authorization": f"Bearer {TOKEN}"})
        try:
            return urllib.request.urlopen(request).status
        except urllib.error.HTTPError as refused:
            return refused.code

    def signal(self, which):
        self.process.send_signal(which)

    def end(self):
        self.process.wait(timeout=30)

    def owns(self):
        """Whether the log of its process says last that it owns the stores."""
        text = self.log.read_text()[self.begins :]
        return text.rfind("this node owns the stores") > text.rfind("does not own the stores any more")

    def session(self):
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([self.address]), request_timeout=30, retry_policy=FallthroughRetryPolicy()
        )
        cluster = Cluster(
            [self.address],
            port=self.cql,
            protocol_version=4,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=ConstantReconnectionPolicy(0.2, None),
        )
        self.clusters.append(cluster)
        return cluster.connect()


class Client(threading.Thread):
    """One client of one node, with its own keys."""

    def __init__(self, number, node, until):
        super().__init__(daemon=True)
        self.number, self.node, self.until = number, node, until
        self.random = random.Random(number)
        self.session = node.session()
        self.written = self.acknowledged = self.increments = self.unknown = 0
        self.links, self.pair, self.wrong, self.last, self.done = [], 0, [], time.monotonic(), 0

    def run(self):
        work = [self.register, self.count, self.link, self.batch, self.read]
        while not self.until.is_set():
            try:
                self.random.choice(work)()
                self.last = time.monotonic()
                self.done += 1
            except UNKNOWN + NOTHING + (ReadTimeout, ReadFailure):
                time.sleep(0.05)
            except Exception as error:  # a client sees no other error
                self.wrong.append(f"client {self.number}: {type(error).__name__}: {error}")
                time.sleep(0.2)

    def register(self):
        self.written += 1
        self.session.execute("INSERT INTO fleet.registers (k, v) VALUES (%s, %s)", (self.number, self.written))
        self.acknowledged = self.written

    def read(self):
        least = self.acknowledged
        row = self.session.execute("SELECT v FROM fleet.registers WHERE k = %s", (self.number,)).one()
        if least and (row is None or not least <= row.v <= self.written):
            self.wrong.append(f"client {self.number} read {row} after {least} was acknowledged, of {self.written}")

    def count(self):
        try:
            self.session.execute("UPDATE fleet.counters SET c = c + 1 WHERE k = %s", (self.number,))
            self.increments += 1
        except UNKNOWN:
            self.unknown += 1
            raise

    def link(self):
        row = self.session.execute("SELECT v FROM fleet.chain WHERE k = 1").one()
        now = row.v
        text = "UPDATE fleet.chain SET v = %s, who = %s WHERE k = 1 IF v = %s"
        if self.session.execute(text, (now + 1, self.number, now)).one().applied:
            self.links.append(now + 1)

    def batch(self):
        number = self.pair + 1
        row = "INSERT INTO fleet.pairs (k, c, v) VALUES ({}, {}, {});"
        both = row.format(2 * self.number, 1, number) + row.format(2 * self.number + 1, 1, number)
        self.pair = number
        self.session.execute(f"BEGIN BATCH {both} APPLY BATCH")


class Patient:
    """A session whose node may just have started again."""

    def __init__(self, session):
        self.session = session

    def execute(self, *arguments):
        begun = time.monotonic()
        while True:
            try:
                return self.session.execute(*arguments)
            except UNKNOWN + NOTHING:
                if time.monotonic() - begun > READY_SECONDS_MAX:
                    raise
                time.sleep(0.2)


def judge(clients, session):
    """What is wrong at the end, by what the database has."""
    wrong = [line for client in clients for line in client.wrong]
    given = {}
    for client in clients:
        key = client.number
        row = session.execute("SELECT v FROM fleet.registers WHERE k = %s", (key,)).one()
        if client.acknowledged and (row is None or not client.acknowledged <= row.v <= client.written):
            wrong.append(f"register {key}: {row}, acknowledged {client.acknowledged} of {client.written}")
        row = session.execute("SELECT c FROM fleet.counters WHERE k = %s", (key,)).one()
        found = row.c if row else 0
        if not client.increments <= found <= client.increments + client.unknown:
            wrong.append(f"counter {key}: {found}, acknowledged {client.increments}, unknown {client.unknown}")
        for link in client.links:
            if link in given:
                wrong.append(f"link {link} was given to {given[link]} and {key}")
            given[link] = key
        halves = {r.v for k in (2 * key, 2 * key + 1) for r in session.execute("SELECT v FROM fleet.pairs WHERE k = %s", (k,))}
        if client.pair and len(halves) > 1:
            wrong.append(f"pair {key}: {halves}")
    return wrong


def change_schema(nodes, sessions, count, chance):
    """Makes tables through random nodes, and writes to each through all others at once. Returns what is wrong."""
    wrong = []
    for number in range(count):
        maker = chance.choice(nodes)
        sessions[maker.number].execute(f"CREATE TABLE fleet.made{number} (k int PRIMARY KEY, v int)")
        for node in nodes:
            try:
                sessions[node.number].execute(f"INSERT INTO fleet.made{number} (k, v) VALUES ({node.number}, 1)")
            except Exception as error:
                wrong.append(f"table {number} of node {maker.number} on node {node.number}: {error}")
        versions = {sessions[node.number].execute("SELECT schema_version FROM system.local").one()[0] for node in nodes}
        if len(versions) > 1:
            wrong.append(f"after table {number} there are {len(versions)} versions of the schema")
    return wrong


def tell_status(nodes):
    """Asks each node for its status, and for the nodes by CQL. Returns what is wrong."""
    wrong = []
    names, owner = [f"n{node.number}" for node in nodes], next(f"n{node.number}" for node in nodes if node.owns())
    for node in nodes:
        told = node.status()
        shown = [(each["name"], each["state"], each["owner"]) for each in told["status"]["nodes"]]
        if shown != [(name, "up", name == owner) for name in names]:
            wrong.append(f"node {node.number} tells of nodes {shown}")
        if told["status"]["addresses"] != [f"{node.address}:{node.cql}"]:
            wrong.append(f"node {node.number} tells the status of {told['status']['addresses']}")
        # What stores and budgets know is the owner's.
        chain = [table for table in told["tables"]["tables"] if table["table"] == "chain"]
        if [table["partitions"] for table in chain] != [1] or not chain[0]["request_units"] or not told["status"]["partitions"]:
            wrong.append(f"node {node.number} tells of the table {chain}, of {told['status']['partitions']} partitions")
        rows = node.session().execute("SELECT name, host_id, state, owner FROM system_cosmos.nodes")
        by_cql = sorted((row.name, row.state, row.owner) for row in rows)
        if by_cql != shown:
            wrong.append(f"node {node.number} has rows for nodes {by_cql}")
    return wrong


FAULTS = ["kill", "stop 1.7", "stop 6", "restart"]


def fault(node, kind):
    """Does it, and returns when the node serves again."""
    if kind == "kill":
        node.signal(signal.SIGKILL)
        node.end()
        time.sleep(3)
        node.start()
    elif kind == "restart":
        node.signal(signal.SIGTERM)
        node.end()
        node.start()
    else:
        node.signal(signal.SIGSTOP)
        time.sleep(float(kind.split()[1]))
        node.signal(signal.SIGCONT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schema-changes", type=int, default=20)
    options = parser.parse_args()
    random.seed(options.seed)
    chance = random.Random(options.seed)
    print(f"seed {options.seed}, {options.nodes} nodes")
    bucket = os.environ["HELENUS_COMPAT_BUCKET"]
    wrong = with_nodes(options, options.nodes, bucket, lambda nodes: play(nodes, options, chance))
    wrong += with_nodes(options, 2, f"{bucket}-of-two", refuse_levels)
    for line in wrong[:20]:
        print(line)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


def with_nodes(options, count, bucket, course):
    """Starts nodes, and returns what a course with them finds wrong."""
    with tempfile.TemporaryDirectory() as folder:
        nodes = [Node(options.program, number, free_ports(3), Path(folder), bucket) for number in range(1, count + 1)]
        # Some drivers assume one port on all nodes.
        cql = nodes[0].cql
        for node in nodes:
            node.cql = cql
        try:
            for node in nodes:
                node.start()
            return course(nodes)
        finally:
            for node in nodes:
                for cluster in node.clusters:
                    cluster.shutdown()
                if node.process and node.process.poll() is None:
                    node.process.kill()


def refuse_levels(nodes):
    """Kills the owner of two nodes, and asks the other one at each level until QUORUM is met again. Returns what is wrong."""
    owner = next(node for node in nodes if node.owns())
    session = next(node for node in nodes if node is not owner).session()
    session.execute(KEYSPACE)
    session.execute(TABLES[0])
    write, read = "INSERT INTO fleet.registers (k, v) VALUES (1, 1)", "SELECT v FROM fleet.registers WHERE k = 1"
    asked = {
        "read at QUORUM": SimpleStatement(read, consistency_level=ConsistencyLevel.QUORUM),
        "write at QUORUM": SimpleStatement(write, consistency_level=ConsistencyLevel.QUORUM),
        "write at ONE": SimpleStatement(write, consistency_level=ConsistencyLevel.ONE),
        "read at ONE": SimpleStatement(read, consistency_level=ConsistencyLevel.ONE),
    }
    wrong = []
    for what, statement in asked.items():
        session.execute(statement)
    try:
        session.execute(SimpleStatement(read, consistency_level=ConsistencyLevel.THREE))
        wrong.append("THREE was met by two nodes")
    except Unavailable as error:
        if (error.required_replicas, error.alive_replicas) != (3, 2):
            wrong.append(f"THREE of two nodes: {error}")
    owner.signal(signal.SIGKILL)
    owner.end()
    killed = time.monotonic()
    refused, met = {what: [] for what in asked}, {what: [] for what in asked}
    while time.monotonic() - killed < 2 * SEATED_SECONDS:
        for what, statement in asked.items():
            try:
                session.execute(statement)
                met[what].append(time.monotonic() - killed)
            except Unavailable as error:
                refused[what].append(time.monotonic() - killed)
                if (error.required_replicas, error.alive_replicas) != (2, 1):
                    wrong.append(f"{what}: {error}")
            except (WriteTimeout, ReadTimeout):
                # It was sent to the node that was killed.
                pass
        time.sleep(0.1)
    for what in asked:
        first, last = (min(met[what], default=99), max(refused[what], default=0))
        print(f"one of two nodes is killed: {what}: met after {first:.1f} s, refused until {last:.1f} s")
        if what == "read at ONE" and (last or first > NEXT_WRITE_SECONDS_MAX):
            wrong.append(f"{what}: met after {first:.1f} s, refused until {last:.1f} s")
        if what != "read at ONE" and not SEATED_SECONDS - 2 <= last <= first <= SEATED_SECONDS + 3:
            wrong.append(f"{what}: refused until {last:.1f} s, met after {first:.1f} s")
    other = next(node for node in nodes if node is not owner)
    answers = [other.forget(f"n{node.number}") for node in (other, owner, owner)]
    if answers != [409, 200, 409]:
        wrong.append(f"to forget a node that is up, one that is down, and that one again was answered {answers}")
    return wrong


def play(nodes, options, chance):
    sessions = {node.number: node.session() for node in nodes}
    first = sessions[1]
    first.execute(KEYSPACE)
    for table in TABLES:
        first.execute(table)
    first.execute("INSERT INTO fleet.chain (k, v) VALUES (1, 0)")
    until = threading.Event()
    clients = [Client(10 * node.number + place, node, until) for node in nodes for place in range(2)]
    for client in clients:
        client.start()
    begun = time.monotonic()
    wrong = change_schema(nodes, sessions, options.schema_changes, chance)
    spent = time.monotonic() - begun
    print(f"{options.schema_changes} tables, each written through all nodes at once: {spent * 1000 / max(1, options.schema_changes):.0f} ms each")
    wrong += tell_status(nodes)
    time.sleep(2)
    gaps = []
    for number in range(options.rounds):
        owners = [node for node in nodes if node.owns()]
        edges = [node for node in nodes if node not in owners]
        is_of_owner = owners and chance.random() < 0.7
        node = owners[-1] if is_of_owner else chance.choice(edges or nodes)
        kind = chance.choice(FAULTS)
        others = [client for client in clients if client.node is not node]
        before = time.monotonic()
        counts = [client.done for client in others]
        waiter = threading.Thread(target=fault, args=(node, kind))
        waiter.start()
        longest = before
        while waiter.is_alive() or time.monotonic() - before < 7:
            time.sleep(0.02)
            longest = max(longest, *(client.last for client in others))
            gap = time.monotonic() - longest
            if gaps and len(gaps) > number:
                gaps[number] = max(gaps[number], gap)
            else:
                gaps.append(gap)
        waiter.join()
        progress = sum(client.done - count for client, count in zip(others, counts))
        what = "the owner" if is_of_owner else "an edge"
        print(f"round {number + 1}: {what}, node {node.number}: {kind}: no answer for {gaps[number]:.2f} s, {progress} operations of others")
        if gaps[number] > NEXT_WRITE_SECONDS_MAX:
            wrong.append(f"round {number + 1}: no operation was acknowledged for {gaps[number]:.2f} s")
        time.sleep(1)
    until.set()
    for client in clients:
        client.join(timeout=40)
    wrong += judge(clients, Patient(sessions[chance.choice(nodes).number]))
    done = sum(client.done for client in clients)
    unknown = sum(client.unknown for client in clients)
    print(f"{done} operations, {sum(len(c.links) for c in clients)} links, {unknown} increments without an answer; longest gap {max(gaps, default=0):.2f} s")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
