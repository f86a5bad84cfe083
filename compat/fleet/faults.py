"""Nodes of a fleet that fail while clients write, read and change the schema through all of them.

    faults.py PROGRAM [--nodes N] [--rounds N] [--pairs N] [--faults NAME,…] [--cut-seconds N] [--seed N] [--schema-changes N] [--rolling N] [--idle] [--keep FOLDER]
        [--patience FACTOR]

It runs under compat/bucket/with, which names a bucket. Each node is a process at an address of its own, 127.0.0.1 and up; clients.py says what clients
do. links.py stands between each node and the store, and between each two nodes (connect.c says how). A round picks a fault by its seed, and seven
times of ten the owner for it:

    kill                  kill -9; started again 3 s later
    restart               SIGTERM; started again
    stop 1.7, stop 6      SIGSTOP for so many seconds: shorter and longer than the lease
    clock                 kill -9; started again with a clock that is one hour ahead, one behind, or right; over gs only, since others check dates
    store refuse          for `--cut-seconds`, 4 s, connections to the store are reset
    store hang            … requests wait, and reach the store afterwards
    store 503             … are answered 503
    store deaf            … are done, and their answers lost
    store slow            … take 300 ms longer each way
    peer both             for the same time no byte passes between the owner and another node
    peer from, peer to    … none from the node to the other one, or to it

During each fault a table is made through a node that has none, and written through all: none may say that there is no such table. `--pairs` rounds kill
two nodes at once, one of them the owner every other time; they are started again after 3 s, or after 13 s, when they have no seats any more.
`--rolling` rounds end and start all nodes one after the other, while applications with the driver's default policies write and read.

In the end the data is judged, then spoiled and judged again, which must be seen.

At last two nodes of a fleet of their own: the owner is killed. The other one refuses QUORUM, and writes at any level, until the dead node has no
seats any more; it reads at ONE as soon as it is the owner. With `--idle` four nodes with one client, whose owner loses the store: its node
writes, and then the others, which nobody has asked meanwhile.
"""

import argparse
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from cassandra import ConsistencyLevel, InvalidRequest, ReadTimeout, Unavailable, WriteTimeout
from cassandra.cluster import Cluster
from cassandra.query import SimpleStatement

from clients import EXPECTED, KEYSPACE, TABLES, Client, Patient, Reader, bite, judge
from links import Links, compile_connect
from nodes import Node, faketime, free_ports, owner_of

#: Seconds until the next acknowledged write after a fault of one node, half of the time, and after one of two: the issue's bounds.
NEXT_WRITE_SECONDS_MAX, NEXT_WRITE_SECONDS_P50_MAX, NEXT_WRITE_SECONDS_MAX_OF_TWO = 5.0, 4.0, 15.0

#: Rounds whose median is judged.
JUDGED_ROUNDS_MIN = 20

#: Seconds for which a node keeps its seats after it was heard last.
SEATED_SECONDS = 10.0

#: Seconds after a fault in which each client has to have a write acknowledged: a node that lost the lease is an edge again within ten.
BACK_SECONDS_MAX = 15.0

#: Seconds until a node writes whose owner has no store, with one client.
IDLE_SECONDS = 30.0

#: Seconds that are watched at least.
ROUND_SECONDS = 7.0

OF_PROCESSES = ["kill", "restart", "stop 1.7", "stop 6"]
OF_STORES = ["store refuse", "store hang", "store 503", "store deaf", "store slow"]
OF_PEERS = ["peer both", "peer from", "peer to"]
FAULTS = [*OF_PROCESSES, "clock", *OF_STORES, *OF_PEERS]


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


def start_again(node):
    node.signal(signal.SIGKILL)
    node.end()
    time.sleep(3)
    node.start()


def fault(node, peer, kind, options, chance):
    """Does it, and returns when the node serves again."""
    what, _, how = kind.partition(" ")
    if what == "kill":
        start_again(node)
    elif what == "clock":
        node.clock_offset_seconds = chance.choice([seconds for seconds in (-3600, 0, 3600) if seconds != node.clock_offset_seconds])
        start_again(node)
    elif what == "restart":
        node.signal(signal.SIGTERM)
        node.end()
        node.start()
    elif what == "stop":
        node.signal(signal.SIGSTOP)
        time.sleep(float(how))
        node.signal(signal.SIGCONT)
    elif what == "store":
        cut([(node, node.to_store, how)], options.cut_seconds)
    else:
        # Each of the two connects to the other.
        there, back = {"both": ("hang", "hang"), "from": ("there", "back"), "to": ("back", "there")}[how]
        cut([(node, node.to(peer), there), (peer, peer.to(node), back)], options.cut_seconds)


def cut(cuts, seconds):
    for node, link, how in cuts:
        node.links.fail(link, how)
    time.sleep(seconds)
    for node, link, _ in cuts:
        node.links.fail(link, "none")


class Round:
    """A fault, and what clients of other nodes see of it."""

    def __init__(self, name, affected, clients, act, seconds_max):
        self.name, self.affected, self.clients, self.act, self.seconds_max = name, affected, clients, act, seconds_max
        self.others = [client for client in clients if client.node not in affected]
        #: Longest time without an acknowledged write of any client of another node, and of each of these.
        self.gap = self.gap_of_one = 0.0

    def look(self, begun):
        """Sees for how long no write was acknowledged."""
        time.sleep(0.02)
        now, since = time.monotonic(), [client.last for client in self.others]
        self.gap = max(self.gap, now - max(begun, *since))
        self.gap_of_one = max(self.gap_of_one, now - max(begun, min(since)))

    def run(self, meanwhile):
        """Returns what is wrong."""
        begun, done = time.monotonic(), sum(client.done for client in self.others)
        failed = []

        def run(act):
            try:
                act()
            except (Exception, SystemExit) as error:
                failed.append(f"{self.name}: {type(error).__name__}: {error}")

        acts = [threading.Thread(target=run, args=(act,)) for act in (self.act, meanwhile)]
        for act in acts:
            act.start()
        while any(act.is_alive() for act in acts) or time.monotonic() - begun < ROUND_SECONDS:
            self.look(begun)
        ended, progress = time.monotonic(), sum(client.done for client in self.others) - done
        while any(client.last < ended for client in self.clients) and time.monotonic() - ended < BACK_SECONDS_MAX:
            self.look(begun)
        back = time.monotonic() - ended
        text = f"{self.name}: no acknowledged write for {self.gap:.2f} s, of one client {self.gap_of_one:.2f} s"
        print(f"{text}; {progress} operations; all back {back:.2f} s later", flush=True)
        late = sorted({client.node.number for client in self.clients if client.last < ended})
        if self.gap > self.seconds_max:
            failed.append(f"{self.name}: no write was acknowledged for {self.gap:.2f} s")
        return failed + ([f"{self.name}: clients of nodes {late} had no write acknowledged for {back:.1f} s afterwards"] if late else [])


def make_during(number, maker, nodes, sessions, wrong):
    """Makes a table through a node, and writes it through all."""
    time.sleep(1)
    name = f"fleet.during{number}"
    try:
        sessions[maker.number].execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
    except EXPECTED:
        return
    for node in nodes:
        try:
            sessions[node.number].execute(f"INSERT INTO {name} (k) VALUES (1)")
        except EXPECTED:
            pass
        except Exception as error:
            wrong.append(f"round {number}: {name} of node {maker.number} on node {node.number}: {type(error).__name__}: {error}")


def choose(nodes, clients, options, chance, number):
    """A round with a fault of one node."""
    owner = owner_of(nodes)
    edges = [node for node in nodes if node is not owner]
    is_of_owner = owner is not None and chance.random() < 0.7
    node = owner if is_of_owner else chance.choice(edges)
    kind = chance.choice(options.kinds)
    peer = chance.choice(edges) if is_of_owner or owner is None else owner
    affected = [peer if is_of_owner else node] if kind in OF_PEERS else [node]
    name = f"round {number}: {'the owner' if is_of_owner else 'an edge'}, node {node.number}: {kind}"
    name += f", with node {peer.number}" if kind in OF_PEERS else ""
    return Round(name, affected, clients, lambda: fault(node, peer, kind, options, chance), NEXT_WRITE_SECONDS_MAX)


def choose_two(nodes, clients, chance, number):
    owner = owner_of(nodes)
    edges = [node for node in nodes if node is not owner]
    both = [owner, chance.choice(edges)] if owner and number % 2 else chance.sample(edges, 2)
    seconds = chance.choice([3, SEATED_SECONDS + 3])

    def act():
        for node in both:
            node.signal(signal.SIGKILL)
        for node in both:
            node.end()
        time.sleep(seconds)
        starts = [threading.Thread(target=node.start) for node in both]
        for start in starts:
            start.start()
        for start in starts:
            start.join()

    who = "the owner and an edge" if owner in both else "two edges"
    name = f"two at once, {number}: {who} killed, nodes {both[0].number} and {both[1].number}, for {seconds:.0f} s"
    return Round(name, both, clients, act, NEXT_WRITE_SECONDS_MAX_OF_TWO)


def lose_store(nodes):
    """The owner has no store, and one other node is asked to write until it has. Returns what is wrong: then each node, asked for nothing before, writes."""
    owner = owner_of(nodes)
    edges = [node for node in nodes if node is not owner]
    sessions = {node.number: node.session() for node in nodes}
    for text in (KEYSPACE, TABLES[0]):
        sessions[owner.number].execute(text)
    wrong = []
    owner.links.fail(owner.to_store, "refuse")
    for node in (*edges, owner):
        begun = time.monotonic()
        seconds_max = IDLE_SECONDS if node is edges[0] else BACK_SECONDS_MAX
        while time.monotonic() - begun < seconds_max:
            try:
                sessions[node.number].execute(f"INSERT INTO fleet.registers (k, v) VALUES ({node.number}, 1)")
                break
            except EXPECTED:
                time.sleep(0.1)
        else:
            wrong.append(f"node {node.number} wrote nothing for {seconds_max:.0f} s after the owner, node {owner.number}, had no store")
        print(f"without the owner's store, alone: node {node.number} wrote after {time.monotonic() - begun:.1f} s")
        owner.links.fail(owner.to_store, "none")
    return wrong


def play(nodes, options, chance):
    sessions = {node.number: node.session() for node in nodes}
    first = sessions[1]
    for text in (KEYSPACE, *TABLES, "INSERT INTO fleet.chain (k, v) VALUES (1, 0) IF NOT EXISTS"):
        first.execute(text)
    until = threading.Event()
    clients = [Client(10 * node.number + place, node, until) for node in nodes for place in range(2)]
    reader = Reader(nodes, until)
    for thread in (*clients, reader):
        thread.clients = clients
        thread.start()
    begun = time.monotonic()
    wrong = change_schema(nodes, sessions, options.schema_changes, chance)
    spent = time.monotonic() - begun
    print(f"{options.schema_changes} tables, each written through all nodes at once: {spent * 1000 / max(1, options.schema_changes):.0f} ms each")
    wrong += tell_status(nodes)
    time.sleep(2)
    ones, twos = [], []
    for number in range(1, options.rounds + options.pairs + 1):
        of_two = number > options.rounds
        played = choose_two(nodes, clients, chance, number) if of_two else choose(nodes, clients, options, chance, number)
        played.seconds_max *= options.patience
        maker = chance.choice([node for node in nodes if node not in played.affected])
        wrong += played.run(lambda: make_during(number, maker, nodes, sessions, wrong))
        (twos if of_two else ones).append(played)
    for _ in range(options.rolling):
        wrong += roll(nodes)
    until.set()
    for thread in (*clients, reader):
        thread.join(timeout=40)
    wrong += reader.finish(set().union(*(client.seen for client in clients)))
    session = Patient(sessions[chance.choice(nodes).number])
    wrong += judge(clients, session)
    wrong += bite(clients, session)
    done, unknown = sum(client.done for client in clients), sum(client.unknown for client in clients)
    links = sum(len(client.links) for client in clients)
    print(f"{done} operations, {links} links, {unknown} increments without an answer, {reader.pages} pages of the feed, {len(reader.rows)} rows")
    wrong += tell_gaps(ones, twos)
    return wrong


def tell_gaps(ones, twos):
    """Prints for how long no write was acknowledged. Returns what is wrong."""
    wrong = []
    of_owner = [played for played in ones if "the owner" in played.name]
    for what, rounds in (("one node", ones), ("the owner", of_owner), ("two at once", twos)):
        if rounds:
            gaps = [played.gap for played in rounds]
            print(f"{what}: {len(gaps)} faults, no acknowledged write for {statistics.median(gaps):.2f} s (p50), {max(gaps):.2f} s at most")
            if what == "one node" and len(gaps) >= JUDGED_ROUNDS_MIN and statistics.median(gaps) > NEXT_WRITE_SECONDS_P50_MAX:
                wrong.append(f"one node failed: no acknowledged write for {statistics.median(gaps):.2f} s (p50)")
    return wrong


class Application(threading.Thread):
    """Writes and reads with the driver's default policies, through all nodes."""

    def __init__(self, nodes, number, until):
        super().__init__(daemon=True)
        cluster = Cluster([node.address for node in nodes], port=nodes[0].cql, protocol_version=4)
        nodes[0].clusters.append(cluster)
        self.session, self.number, self.until = cluster.connect(), number, until
        self.write = self.session.prepare("INSERT INTO fleet.rolled (k, v) VALUES (?, ?)")
        self.read = self.session.prepare("SELECT v FROM fleet.rolled WHERE k = ?")
        self.write.is_idempotent = self.read.is_idempotent = True
        self.done, self.wrong = 0, []
        #: Which node was ended last, and when.
        self.ended, self.ended_at = None, time.monotonic()

    def run(self):
        while not self.until.is_set():
            key = 1000 * self.number + self.done % 1000
            try:
                self.session.execute(self.write, (key, self.done))
                row = self.session.execute(self.read, (key,)).one()
                if row is None or row.v != self.done:
                    self.wrong.append(f"application {self.number} read {row} where it had written {self.done}")
            except Exception as error:
                after = time.monotonic() - self.ended_at
                self.wrong.append(f"application {self.number}, {after:.2f} s after {self.ended} was told to end: {type(error).__name__}: {error}")
            self.done += 1


def roll(nodes):
    """Ends and starts all nodes, one after the other, under applications. Returns what is wrong."""
    session = Patient(nodes[0].session())
    session.execute("CREATE TABLE IF NOT EXISTS fleet.rolled (k int PRIMARY KEY, v int)")
    until = threading.Event()
    applications = [Application(nodes, number, until) for number in range(4)]
    for application in applications:
        application.start()
    time.sleep(2)
    for node in nodes:
        who = f"{'the owner' if node.owns() else 'an edge'}, node {node.number}"
        for application in applications:
            application.ended, application.ended_at = who, time.monotonic()
        begun, before = time.monotonic(), sum(len(application.wrong) for application in applications)
        node.signal(signal.SIGTERM)
        node.end()
        ended = time.monotonic()
        node.start()
        started = time.monotonic()
        # Until drivers have connected to it again.
        time.sleep(3)
        errors = sum(len(application.wrong) for application in applications) - before
        print(f"rolling restart: {who}: ended in {ended - begun:.2f} s, served {started - ended:.2f} s later; {errors} errors", flush=True)
    until.set()
    for application in applications:
        application.join(timeout=40)
    wrong = [line for application in applications for line in application.wrong]
    print(f"rolling restart: {sum(application.done for application in applications)} writes and reads, {len(wrong)} errors seen by applications")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--cut-seconds", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schema-changes", type=int, default=20)
    parser.add_argument("--rolling", type=int, default=0)
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--patience", type=float, default=1.0, help="how often the time to the next write is allowed, where others share the machine")
    options = parser.parse_args()
    if unknown := set(options.faults.split(",")) - set(FAULTS):
        parser.error(f"no fault {', '.join(sorted(unknown))}; there are {', '.join(FAULTS)}")
    chance = random.Random(options.seed)
    print(f"seed {options.seed}, {options.nodes} nodes")
    bucket = os.environ["HELENUS_COMPAT_BUCKET"]
    with tempfile.TemporaryDirectory() as built:
        connect = compile_connect(built)
        options.kinds = [kind for kind in options.faults.split(",") if is_possible(kind, connect)]
        wrong = with_nodes(options, options.nodes, bucket, connect, lambda nodes: play(nodes, options, chance))
    wrong += with_nodes(options, 2, f"{bucket}-of-two", None, refuse_levels)
    if options.idle:
        wrong += with_nodes(options, 4, f"{bucket}-idle", None, lose_store)
    for line in wrong[:20]:
        print(line)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


def is_possible(kind, connect):
    """Whether this machine has what a fault needs; with CI=true that is an error."""
    if kind == "clock" and os.environ.get("HELENUS_COMPAT_STORE") != "gs":
        print("no fault `clock`: this store refuses requests whose date is off, so the node does not start")
        return False
    needs = {"clock": (faketime(), "libfaketime"), "peer": (connect, "a C compiler")}.get(kind.split()[0])
    if needs is None or needs[0]:
        return True
    if os.environ.get("CI") == "true":
        raise SystemExit(f"{kind}: {needs[1]} is not on this machine, and CI=true")
    print(f"no fault `{kind}`: {needs[1]} is not on this machine")
    return False


def with_nodes(options, count, bucket, connect, course):
    """Starts nodes, and returns what a course with them finds wrong."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(options.keep or folder) / f"of-{count}"
        folder.mkdir(parents=True, exist_ok=True)
        nodes = [Node(options.program, number, free_ports(3), folder, bucket) for number in range(1, count + 1)]
        links = Links()
        # Some drivers assume one port on all nodes.
        cql = nodes[0].cql
        for node in nodes:
            node.cql = cql
        try:
            for node in nodes:
                node.put_behind(links, connect, nodes)
            for node in nodes:
                node.start()
            return course(nodes)
        finally:
            for node in nodes:
                for cluster in node.clusters:
                    cluster.shutdown()
                if node.process and node.process.poll() is None:
                    node.process.kill()
            links.end()


def refuse_levels(nodes):
    """Kills the owner of two nodes, and asks the other one at each level until QUORUM is met again. Returns what is wrong."""
    owner = next(node for node in nodes if node.owns())
    session = next(node for node in nodes if node is not owner).session(ConsistencyLevel.LOCAL_ONE)
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


if __name__ == "__main__":
    sys.exit(main())
