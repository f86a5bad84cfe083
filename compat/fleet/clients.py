"""What clients of a fleet do while its nodes fail, and what must hold of it. Each client is connected to one node, and goes on through every fault:

    registers    a client writes rising numbers under its own key; others read them through other nodes: the last that was acknowledged, or a later one
    counters     each acknowledged increment counts once; one without an answer counts at most once
    conditions   a chain of numbers by IF v = n: no number is given to two clients, and a read at SERIAL has the last number that any client was given
    batches      two rows by one logged batch: both have the same number
    sets         elements are added and removed: those of acknowledged requests are there, or not there
    views        rows that change the columns of a view's key: at the end the view has what its base has
    feeds        rows that are inserted once: a reader that follows the change feed, each page by another node, sees each

Half of the clients date their writes themselves. The others leave that to the server, whose clock may be an hour off.
"""

import random
import threading
import time

from cassandra import ConsistencyLevel, OperationTimedOut, ReadFailure, ReadTimeout, Unavailable, WriteFailure, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.query import SimpleStatement

#: Errors after which a write may have happened.
UNKNOWN = (WriteTimeout, WriteFailure, OperationTimedOut, NoHostAvailable, ConnectionException)

#: Errors after which nothing happened.
NOTHING = (Unavailable,)

#: All errors that a client may see.
EXPECTED = (*UNKNOWN, *NOTHING, ReadTimeout, ReadFailure)

#: Seconds for which the judge asks again.
PATIENT_SECONDS_MAX = 60

#: Elements that a client has in its set, and rows in the table of the view.
ELEMENTS, VIEWED_ROWS, VIEWED_KEYS = 20, 30, 5

#: Seconds for which the reader of the feed goes on at the end, while rows are missing.
FEED_SECONDS_MAX = 30

KEYSPACE = "CREATE KEYSPACE fleet WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}"
TABLES = [
    "CREATE TABLE fleet.registers (k int PRIMARY KEY, v int)",
    "CREATE TABLE fleet.counters (k int PRIMARY KEY, c counter)",
    "CREATE TABLE fleet.chain (k int PRIMARY KEY, v int, who int)",
    "CREATE TABLE fleet.pairs (k int, c int, v int, PRIMARY KEY (k, c))",
    "CREATE TABLE fleet.sets (k int PRIMARY KEY, s set<int>)",
    "CREATE TABLE fleet.base (k int, c int, v int, w int, PRIMARY KEY (k, c))",
    "CREATE MATERIALIZED VIEW fleet.by_v AS SELECT * FROM fleet.base WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
    "CREATE TABLE fleet.followed (k int, c int, v int, PRIMARY KEY (k, c)) WITH cdc = true",
]
FEED = "SELECT k, c FROM fleet.followed WHERE COSMOS_CHANGEFEED_FROM_START() = true"


class Client(threading.Thread):
    """One client of one node, with its own keys."""

    def __init__(self, number, node, until):
        super().__init__(daemon=True)
        self.number, self.node, self.until = number, node, until
        self.random = random.Random(number)
        self.session = node.session()
        self.session.use_client_timestamp = number % 2 == 1
        #: All clients, of which this one is one.
        self.clients = [self]
        self.written = self.acknowledged = self.increments = self.unknown = self.pair = self.inserted = 0
        self.links, self.wrong, self.seen = [], [], set()
        #: Numbers of the register whose write may have happened, or happen later.
        self.doubts = set()
        #: Elements of the set: whether each is there, or None where that is not known.
        self.elements = {}
        #: Elements whose change may happen later, since the server dates it.
        self.late = set()
        #: When a write was acknowledged last, and how many operations were.
        self.last, self.done = time.monotonic(), 0

    def run(self):
        writes = [self.register, self.count, self.link, self.batch, self.change_set, self.change_base, self.insert]
        while not self.until.is_set():
            is_read = self.random.random() < 0.3
            work = self.random.choice([self.read, self.read_chain] if is_read else writes)
            try:
                work()
                self.done += 1
                if not is_read:
                    self.last = time.monotonic()
            except EXPECTED:
                time.sleep(0.05)
            except Exception as error:  # a client sees no other error
                self.wrong.append(f"client {self.number} of node {self.node.number}: {work.__name__}: {type(error).__name__}: {error}")
                time.sleep(0.2)

    def register(self):
        self.written += 1
        number = self.written
        try:
            self.session.execute("INSERT INTO fleet.registers (k, v) VALUES (%s, %s)", (self.number, number))
        except UNKNOWN:
            if not self.session.use_client_timestamp:
                self.doubts.add(number)
            raise
        self.acknowledged = number

    def holds(self, row, least):
        """Whether its register may have these contents after a number was acknowledged."""
        found = row.v if row else 0
        return least <= found <= self.written or found in self.doubts

    def read(self):
        other = self.random.choice(self.clients)
        least = other.acknowledged
        level = self.random.choice([ConsistencyLevel.QUORUM, ConsistencyLevel.SERIAL])
        row = self.session.execute(SimpleStatement(f"SELECT v FROM fleet.registers WHERE k = {other.number}", consistency_level=level)).one()
        if not other.holds(row, least):
            text = f"client {self.number} of node {self.node.number} read {row} of {other.number} after {least} was acknowledged, of {other.written}"
            self.wrong.append(text)

    def count(self):
        try:
            self.session.execute("UPDATE fleet.counters SET c = c + 1 WHERE k = %s", (self.number,))
            self.increments += 1
        except UNKNOWN:
            self.unknown += 1
            raise

    def read_chain(self):
        least = max((client.links[-1] for client in self.clients if client.links), default=0)
        row = self.session.execute(SimpleStatement("SELECT v FROM fleet.chain WHERE k = 1", consistency_level=ConsistencyLevel.SERIAL)).one()
        if row is None or row.v < least:
            self.wrong.append(f"client {self.number} of node {self.node.number} read {row} of the chain after {least} was given")
        return row.v

    def link(self):
        now = self.read_chain()
        text = "UPDATE fleet.chain SET v = %s, who = %s WHERE k = 1 IF v = %s"
        if self.session.execute(text, (now + 1, self.number, now)).one().applied:
            self.links.append(now + 1)

    def batch(self):
        number = self.pair + 1
        row = "INSERT INTO fleet.pairs (k, c, v) VALUES ({}, {}, {});"
        both = row.format(2 * self.number, 1, number) + row.format(2 * self.number + 1, 1, number)
        self.pair = number
        self.session.execute(f"BEGIN BATCH {both} APPLY BATCH")

    def change_set(self):
        element = self.random.randrange(ELEMENTS)
        adds = self.random.random() < 0.6
        before = self.elements.get(element, False)
        self.elements[element] = None
        try:
            self.session.execute(f"UPDATE fleet.sets SET s = s {'+' if adds else '-'} {{{element}}} WHERE k = {self.number}")
        except NOTHING:
            self.elements[element] = before
            raise
        except UNKNOWN:
            if not self.session.use_client_timestamp:
                self.late.add(element)
            raise
        self.elements[element] = None if element in self.late else adds

    def change_base(self):
        place = f"k = {self.number} AND c = {self.random.randrange(VIEWED_ROWS)}"
        if self.random.random() < 0.1:
            self.session.execute(f"DELETE FROM fleet.base WHERE {place}")
        else:
            self.session.execute(f"UPDATE fleet.base SET v = {self.random.randrange(VIEWED_KEYS)}, w = {self.done} WHERE {place}")

    def insert(self):
        self.inserted += 1
        row = (self.number, self.inserted)
        self.session.execute("INSERT INTO fleet.followed (k, c, v) VALUES (%s, %s, 1)", row)
        self.seen.add(row)


class Reader(threading.Thread):
    """Follows the change feed, each page by a random node."""

    def __init__(self, nodes, until):
        super().__init__(daemon=True)
        self.sessions, self.until = [node.session() for node in nodes], until
        self.random = random.Random(0)
        self.state, self.rows, self.pages, self.wrong = None, set(), 0, []

    def run(self):
        while not self.until.is_set():
            try:
                if not self.page():
                    time.sleep(0.1)
            except EXPECTED:
                time.sleep(0.1)
            except Exception as error:
                self.wrong.append(f"the reader of the feed: {type(error).__name__}: {error}")
                time.sleep(0.2)

    def page(self):
        """Reads a page. Returns how many rows it has."""
        answer = self.random.choice(self.sessions).execute(SimpleStatement(FEED, fetch_size=500), paging_state=self.state)
        rows = [(row.k, row.c) for row in answer.current_rows]
        self.state = answer.paging_state
        self.rows.update(rows)
        self.pages += 1
        return len(rows)

    def finish(self, expected):
        """Reads on until it has all rows, or for a while. Returns what is wrong."""
        begun = time.monotonic()
        while expected - self.rows and time.monotonic() - begun < FEED_SECONDS_MAX:
            try:
                if not self.page():
                    time.sleep(0.1)
            except EXPECTED:
                time.sleep(0.1)
        missing = sorted(expected - self.rows)
        return self.wrong + ([f"the feed lacks {len(missing)} of {len(expected)} rows: {missing[:5]}"] if missing else [])


class Patient:
    """A session whose node may just have started again."""

    def __init__(self, session):
        self.session = session

    def execute(self, *arguments):
        begun = time.monotonic()
        while True:
            try:
                return self.session.execute(*arguments)
            except EXPECTED:
                if time.monotonic() - begun > PATIENT_SECONDS_MAX:
                    raise
                time.sleep(0.2)


def judge(clients, session):
    """What is wrong at the end, by what the database has."""
    wrong = [line for client in clients for line in client.wrong]
    given = {}
    for client in clients:
        key = client.number
        row = session.execute("SELECT v FROM fleet.registers WHERE k = %s", (key,)).one()
        if not client.holds(row, client.acknowledged):
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
        row = session.execute("SELECT s FROM fleet.sets WHERE k = %s", (key,)).one()
        found = set(row.s or ()) if row else set()
        bad = {element: is_there for element, is_there in client.elements.items() if is_there is not None and is_there != (element in found)}
        if bad:
            wrong.append(f"set {key} is {found}, and of these it is known whether they are there: {bad}")
    base = {(row.v, row.k, row.c, row.w) for row in session.execute("SELECT k, c, v, w FROM fleet.base") if row.v is not None}
    view = {(row.v, row.k, row.c, row.w) for row in session.execute("SELECT v, k, c, w FROM fleet.by_v")}
    if base != view:
        wrong.append(f"the view has {sorted(view - base)[:5]} beside its base, and lacks {sorted(base - view)[:5]}")
    return wrong


def spoil(clients, session):
    """Negative control: changes what clients know, and what the database has. Returns the words by which the judge has to tell of each."""
    client = next(client for client in clients if client.acknowledged and client.pair and client.links and True in client.elements.values())
    key, element = client.number, next(element for element, is_there in client.elements.items() if is_there)
    far = "USING TIMESTAMP 7258118400000000"
    session.execute(f"UPDATE fleet.registers {far} SET v = -1 WHERE k = {key}")
    session.execute(f"UPDATE fleet.counters SET c = c + {client.unknown + 1} WHERE k = {key}")
    session.execute(f"UPDATE fleet.pairs {far} SET v = -1 WHERE k = {2 * key} AND c = 1")
    session.execute(f"UPDATE fleet.sets {far} SET s = s - {{{element}}} WHERE k = {key}")
    client.links.append(client.links[-1])
    return [f"register {key}:", f"counter {key}:", f"link {client.links[-1]} was given", f"pair {key}:", f"set {key} is"]


def bite(clients, session):
    """Tries the judge on spoiled data. Returns what it does not see."""
    expected, told = spoil(clients, session), judge(clients, session)
    return [f"the judge does not see a spoiled {words}" for words in expected if not any(words in line for line in told)]
