"""Kills a server of tables with SIGKILL at random moments under load, starts it again and checks what it promised.

    crash.py PROGRAM [--cycles N] [--seed N] [--data URL]

Each cycle: start, check what earlier cycles left, write with several clients, kill, note what was acknowledged and what was in doubt (sent, not
answered). Checked after every start:

- rows: every acknowledged entity is there with its value, and none that was never sent;
- deletions: what was deleted stays deleted;
- transactions: each rewrites a whole partition, of another number of rows each time, so that two generations in one partition are a half one;
- registers: conditional updates by tag; the value is at least the acknowledged one and at most that and what was in doubt, and no tag that was
  granted comes again with another value;
- tags: the time stamp of an entity never goes back.

Meanwhile, where the server can, the table is split and merged at keys of the load. It needs only Python."""

import argparse
import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid

ACCOUNT = "devstoreaccount1"
KEY = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
TABLE = "crash"
ROWS_MAX = 60
CLIENTS = {"rows": 3, "transactions": 3, "registers": 3}


class Gone(Exception):
    """The server went away before it answered."""


class Client:
    """A connection that is kept."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, verb, resource, query="", body=None, **headers):
        path = f"/{ACCOUNT}{resource}"
        date = email.utils.formatdate(usegmt=True)
        text = f"{date}\n/{ACCOUNT}{path}".encode()
        signature = base64.b64encode(hmac.new(KEY, text, hashlib.sha256).digest()).decode()
        all_headers = {
            "x-ms-date": date,
            "x-ms-version": "2019-02-02",
            "Authorization": f"SharedKeyLite {ACCOUNT}:{signature}",
            "Accept": "application/json;odata=minimalmetadata",
            "Content-Type": "application/json",
        }
        all_headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        try:
            self.connection.request(verb, path + query, body=body, headers=all_headers)
            answer = self.connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Gone(str(error)) from error

    def put(self, partition, row, tag=None, **values):
        headers = {"If_Match": tag} if tag else {}
        status, found, body = self.ask("PUT", place(partition, row), body=json.dumps(values), **headers)
        return status, found.get("ETag"), body

    def delete(self, partition, row):
        return self.ask("DELETE", place(partition, row), If_Match="*")[0]

    def transaction(self, operations):
        """Operations: (verb, partition, row, values); the status of the first part, and the body."""
        boundary = uuid.uuid4().hex
        parts = []
        for verb, partition, row, values in operations:
            body = json.dumps(values) if values is not None else ""
            head = f"{verb} http://127.0.0.1/{ACCOUNT}{place(partition, row)} HTTP/1.1\r\n"
            head += "Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n"
            if verb == "DELETE":
                head += "If-Match: *\r\n"
            parts.append(
                f"--changeset_{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
                f"{head}Content-Length: {len(body)}\r\n\r\n{body}\r\n"
            )
        body = f"--batch_{boundary}\r\nContent-Type: multipart/mixed; boundary=changeset_{boundary}\r\n\r\n"
        body += "".join(parts) + f"--changeset_{boundary}--\r\n--batch_{boundary}--\r\n"
        status, _, answer = self.ask("POST", "/$batch", body=body, Content_Type=f"multipart/mixed; boundary=batch_{boundary}")
        if status != 202:
            return status, answer
        return int(answer.split(b"HTTP/1.1 ", 1)[1][:3]), answer

    def query(self, text):
        """All entities of a filter, page by page."""
        found = []
        more = {}
        while True:
            query = "?" + urllib.parse.urlencode({"$filter": text, **more}, quote_via=urllib.parse.quote)
            status, headers, body = self.ask("GET", f"/{TABLE}()", query)
            if status != 200:
                raise AssertionError(f"{text}: {status} {body[:300]!r}")
            found += json.loads(body)["value"]
            more = {name: headers[f"x-ms-continuation-{name}"] for name in ("NextPartitionKey", "NextRowKey") if headers.get(f"x-ms-continuation-{name}")}
            if not more:
                return found


def place(partition, row):
    return f"/{TABLE}(PartitionKey='{partition}',RowKey='{row}')"


def must(is_so, text):
    if not is_so:
        raise AssertionError(text)


class Rows:
    """Single writes: upserts of new rows, and deletions of some."""

    def __init__(self, name):
        self.partition = f"rows-{name}"
        self.next = 0
        self.kept = {}
        self.deleted = set()
        self.doubts = {}
        self.count = 0

    def step(self, client, draw):
        if self.kept and draw.random() < 0.2:
            row = draw.choice(sorted(self.kept)[-50:])
            self.doubts = {row: None}
            status = client.delete(self.partition, row)
            must(status == 204, f"{self.partition} {row}: a deletion is answered {status}")
            del self.kept[row]
            self.deleted.add(row)
        else:
            row = f"{self.next:08}"
            self.next += 1
            self.doubts = {row: self.next}
            status, _, body = client.put(self.partition, row, n=self.next)
            must(status == 204, f"{self.partition} {row}: a write is answered {status} {body[:200]!r}")
            self.kept[row] = self.next
        self.doubts = {}
        self.count += 1

    def check(self, client):
        found = {e["RowKey"]: e["n"] for e in client.query(f"PartitionKey eq '{self.partition}'")}
        for row, value in self.doubts.items():
            # Done or not: from here on it is as it was found.
            if value is None:
                if row not in found:
                    self.kept.pop(row, None)
                    self.deleted.add(row)
            elif row in found:
                must(found[row] == value, f"{self.partition} {row}: {found[row]} instead of {value}")
                self.kept[row] = value
        self.doubts = {}
        lost = [row for row, value in self.kept.items() if found.get(row) != value]
        back = [row for row in found if row not in self.kept]
        must(not lost, f"{self.partition}: lost {lost[:5]}, {len(lost)} of {len(self.kept)}")
        must(not back, f"{self.partition}: there and not to be {back[:5]}, {len(back)}")


class Transactions:
    """Each transaction rewrites a partition: rows of its generation are written, the others deleted."""

    def __init__(self, name):
        self.partition = f"transactions-{name}"
        self.kept = 0
        self.doubt = None
        self.count = 0

    @staticmethod
    def size(generation):
        return 0 if generation == 0 else 2 + generation * 7 % (ROWS_MAX - 1)

    def step(self, client, draw):
        generation = self.kept + 1
        self.doubt = generation
        new, old = self.size(generation), self.size(self.kept)
        operations = [("PUT", self.partition, f"{row:03}", {"generation": generation}) for row in range(new)]
        operations += [("DELETE", self.partition, f"{row:03}", None) for row in range(new, old)]
        draw.shuffle(operations)
        status, body = client.transaction(operations)
        must(status == 204, f"{self.partition}: a transaction is answered {status} {body[:400]!r}")
        self.kept, self.doubt = generation, None
        self.count += 1

    def check(self, client):
        found = client.query(f"PartitionKey eq '{self.partition}'")
        generations = {e["generation"] for e in found}
        must(len(generations) <= 1, f"{self.partition}: half a transaction, generations {sorted(generations)}")
        generation = generations.pop() if generations else 0
        must(generation in (self.kept, self.doubt), f"{self.partition}: generation {generation}, acknowledged {self.kept}, in doubt {self.doubt}")
        rows = [e["RowKey"] for e in found]
        expected = [f"{row:03}" for row in range(self.size(generation))]
        must(rows == expected, f"{self.partition}: half a transaction, {len(rows)} rows of {len(expected)}")
        self.kept, self.doubt = generation, None


class Registers:
    """A value that grows by conditional updates of clients that race."""

    def __init__(self):
        self.lock = threading.Lock()
        self.granted = {}
        self.value = 0
        self.doubts = 0
        self.stamp = ""
        self.count = 0

    def step(self, client, draw):
        status, headers, body = client.ask("GET", place("register", "r"))
        if status == 404:
            client.ask("POST", f"/{TABLE}", body=json.dumps({"PartitionKey": "register", "RowKey": "r", "n": 0}))
            return
        must(status == 200, f"register: {status} {body[:200]!r}")
        value, tag = json.loads(body)["n"], headers["ETag"]
        with self.lock:
            self.doubts += 1
        status, new, body = client.put("register", "r", tag=tag, n=value + 1)
        with self.lock:
            self.doubts -= 1
            if status == 412:
                return
            must(status == 204, f"register: {status} {body[:200]!r}")
            must(value + 1 not in self.granted, f"register: {value + 1} was granted twice")
            self.granted[value + 1] = new
            self.value = max(self.value, value + 1)
            self.count += 1

    def check(self, client):
        status, headers, body = client.ask("GET", place("register", "r"))
        if status == 404:
            must(self.value == 0, "register: lost")
            return
        entity = json.loads(body)
        must(self.value <= entity["n"] <= self.value + self.doubts, f"register: {entity['n']}, acknowledged {self.value}, {self.doubts} in doubt")
        granted = self.granted.get(entity["n"])
        must(granted in (None, headers["ETag"]), f"register: the tag of {entity['n']} was {granted}, and is {headers['ETag']}")
        stamp = entity["Timestamp"].rstrip("Z").ljust(27, "0")
        must(stamp >= self.stamp, f"register: the time stamp went back from {self.stamp} to {stamp}")
        self.stamp, self.value, self.doubts = stamp, entity["n"], 0


class Server:
    """The program, with its data."""

    def __init__(self, program, data, folder):
        self.program, self.data, self.folder = program, data, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def start(self):
        ready = os.path.join(self.folder, "ready")
        if os.path.exists(ready):
            os.remove(ready)
        self.log = open(os.path.join(self.folder, "log"), "ab")
        command = [self.program, "serve", "--data", self.data, "--listen", "127.0.0.1:0", "--ready-file", ready]
        command += ["--tables-listen", f"127.0.0.1:{self.port}", "--tables-dev"]
        start = time.monotonic()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        while not (os.path.exists(ready) and os.path.getsize(ready)):
            must(self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.logged()[-2000:]}")
            must(time.monotonic() - start < 60, "the server is not ready after a minute")
            time.sleep(0.002)
        with open(ready, encoding="utf-8") as lines:
            self.cql = lines.readline().strip()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def logged(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def run(self, statement):
        """A statement of CQL; whether it was done, and what was said."""
        # By this name the program acts as cqlsh itself.
        command = ["cqlsh", *self.cql.rsplit(":", 1), "-e", statement]
        done = subprocess.run(command, executable=self.program, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        return done.returncode == 0, done.stdout + done.stderr


class Changes:
    """Splits of the table at keys of the load, and merges of its physical partitions."""

    IDS = f"SELECT id FROM system_cosmos.partitions WHERE keyspace_name = 'tables_{ACCOUNT}' AND table_name = '{TABLE}'"
    ALTER = f'ALTER TABLE tables_{ACCOUNT}."{TABLE}" WITH '
    PARTITIONS_MAX = 8

    def __init__(self):
        self.splits = self.merges = 0
        self.refusal = ""

    def step(self, server, draw):
        done, said = server.run(self.IDS)
        if not done:
            return
        ids = [line.strip() for line in said.splitlines() if line.strip().isdigit()]
        if len(ids) >= self.PARTITIONS_MAX:
            left, right = draw.choice(list(zip(ids, ids[1:])))
            done, said = server.run(self.ALTER + f"helenus_merge = {{'left': {left}, 'right': {right}}}")
            self.merges += done
        else:
            key = draw.choice(["register", "rows", "transactions"]) + draw.choice(["", "-", "-0", "-1", "-10", "-2"])
            done, said = server.run(self.ALTER + f"helenus_split_at = '{key}'")
            self.splits += done
        self.refusal = self.refusal if done else said


def load(server, loads, changes, draw, length):
    """Runs all loads until the server is killed; the faults that they met."""
    faults = []
    is_over = threading.Event()

    def change(seed):
        own = random.Random(seed)
        while not is_over.is_set():
            changes.step(server, own)

    def work(one, seed):
        own = random.Random(seed)
        client = Client(server.port)
        try:
            while not is_over.is_set():
                one.step(client, own)
        except Gone as error:
            if not is_over.is_set():
                faults.append(f"the server went away before its end: {error}")
        except AssertionError as error:
            faults.append(str(error))

    threads = [threading.Thread(target=work, args=(one, draw.random())) for one in loads]
    threads.append(threading.Thread(target=change, args=(draw.random(),)))
    for thread in threads:
        thread.start()
    time.sleep(length)
    is_over.set()
    server.kill()
    for thread in threads:
        thread.join()
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--data", help="where the data is; a folder of its own without it")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    folder = tempfile.mkdtemp()
    server = Server(given.program, given.data or f"file:{folder}/data", folder)
    rows = [Rows(n) for n in range(CLIENTS["rows"])]
    transactions = [Transactions(n) for n in range(CLIENTS["transactions"])]
    register, changes = Registers(), Changes()
    loads = [*rows, *transactions, *[register] * CLIENTS["registers"]]
    checked = [*rows, *transactions, register]
    begin = time.monotonic()
    print(f"seed {given.seed}", flush=True)
    try:
        for cycle in range(given.cycles + 1):
            server.start()
            client = Client(server.port)
            if cycle == 0:
                status, _, body = client.ask("POST", "/Tables", body=json.dumps({"TableName": TABLE}))
                must(status in (201, 204), f"no table: {status} {body[:300]!r}")
            for one in checked:
                one.check(client)
            if cycle == given.cycles:
                break
            faults = load(server, loads, changes, draw, 0.3 + draw.random())
            must(not faults, "; ".join(faults))
        must("panicked" not in server.logged(), "the server panicked")
    except (AssertionError, Gone) as error:
        print(f"FAIL {error}\nlog: {folder}/log")
        server.process.kill()
        return 1
    server.kill()
    counts = [sum(one.count for one in group) for group in (rows, transactions, [register])]
    # A load that was never cut proves nothing.
    must(all(counts), f"nothing proved: {counts}")
    print(
        f"{given.cycles} kills in {time.monotonic() - begin:.0f} s: {counts[0]} single writes, {counts[1]} transactions, {counts[2]} conditional "
        f"updates acknowledged; {changes.splits} splits, {changes.merges} merges; 0 lost, 0 half"
    )
    if not changes.splits:
        print(f"no split was done: {changes.refusal.strip()[:300]}")
    shutil.rmtree(folder)
    return 0


sys.exit(main())
