"""Starts a Helenus server and controls it: its clock, its data, its faults.

    with helenus.start() as server:
        session = server.session()
        server.advance(seconds=61)

The server is a child process with its data in memory. It ends with `stop()`, at the end of the `with` block, and when this process dies,
however it dies: the child reads its standard input, which ends with this process.
"""

import collections
import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import threading
import urllib.error
import urllib.request

#: The version of the server's record that this package reads.
API = 1

#: Lines of the server's log that are kept for `Server.log`.
LOG_LINES_MAX = 50

#: Seconds that a request to the admin port may take.
ADMIN_SECONDS_MAX = 30


class HelenusError(Exception):
    """The server does not start, or refuses what it is asked."""


def find_program(program=None):
    """The path of the server's program: `program`, else the variable HELENUS_BIN, else the copy that this package's wheel carries, else
    `helenus` on the search path.

    Nothing is downloaded. Raises HelenusError when there is none.
    """
    for candidate in (program, os.environ.get("HELENUS_BIN"), _carried_program(), shutil.which("helenus")):
        if candidate:
            if not os.access(candidate, os.X_OK):
                raise HelenusError(f"{candidate} is not a program")
            return os.fspath(candidate)
    raise HelenusError("there is no helenus on the search path: set HELENUS_BIN to the program; in a clone `cargo build --release` makes target/release/helenus")


def _carried_program():
    """The program that was installed with this package: beside the other programs of its environment, which need not be activated."""
    try:
        files = importlib.metadata.files("helenus") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name in ("helenus", "helenus.exe") and os.access(file.locate(), os.X_OK) and not file.locate().is_dir():
            return os.fspath(file.locate())
    return None


def start(*arguments, program=None, cosmos=False, nodes=None, **settings):
    """Starts a server on free ports and waits until it answers.

    `arguments` are passed on; `settings` too, with `_` for `-`: `scale_limits="1/1000"`, `burst_capacity=True`. `cosmos` serves as Azure
    Cosmos DB does, with TLS and an account. `nodes=4` makes four virtual nodes.
    """
    command = [find_program(program), "serve", "--data", "memory:", "--ready-json", "-", "--exit-with-stdin"]
    command += ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    if cosmos:
        command += ["--profile", "cosmos", "--tls-listen", "127.0.0.1:0"]
    if nodes:
        command += ["--nodes", str(nodes)]
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else value
        command.append(f"--{name.replace('_', '-')}={text}")
    return Server([*command, *arguments])


class Units:
    """Request units that a block was charged: `spent`, once the block has ended."""

    spent = None


class Server:
    """A running server. Attributes of its record: `cql`, `tls`, `admin`, `account`, `key`, `certificate_pem`, `pid`."""

    def __init__(self, command):
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._log = collections.deque(maxlen=LOG_LINES_MAX)
        self._reader = threading.Thread(target=self._log.extend, args=(self._child.stderr,), daemon=True)
        self._reader.start()
        self._clusters = []
        line = self._child.stdout.readline()
        if not line:
            self._child.wait()
            self._reader.join()
            raise HelenusError(f"the server does not start:\n{self.log}")
        record = json.loads(line)
        if record["api"] != API:
            self.stop()
            raise HelenusError(f"the server's record has version {record['api']}; this package reads {API}")
        self._token = record["token"]
        for name in ("cql", "tls", "admin", "account", "key", "certificate_pem", "pid"):
            setattr(self, name, record[name])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def log(self):
        """The last lines of the server's log."""
        return "".join(self._log)

    @property
    def host(self):
        """The address of CQL without TLS."""
        return self.cql.rsplit(":", 1)[0]

    @property
    def port(self):
        """The port of CQL without TLS."""
        return int(self.cql.rsplit(":", 1)[1])

    def stop(self):
        """Closes the sessions of `session()` and ends the server."""
        for cluster in self._clusters:
            cluster.shutdown()
        self._clusters.clear()
        if self._child.stdin and not self._child.stdin.closed:
            self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()
        self._reader.join()
        self._child.stderr.close()

    def session(self, keyspace=None, **options):
        """A session of the Python driver (package cassandra-driver). With `keyspace`, that keyspace is made where it is missing, and used.

        `options` are those of `cassandra.cluster.Cluster`.
        """
        from cassandra.auth import PlainTextAuthProvider
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
        from cassandra.policies import RoundRobinPolicy

        if self.account:
            options.setdefault("auth_provider", PlainTextAuthProvider(self.account, self.key))
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy())
        options.setdefault("execution_profiles", {EXEC_PROFILE_DEFAULT: profile})
        cluster = Cluster([self.host], port=self.port, **options)
        self._clusters.append(cluster)
        session = cluster.connect()
        if keyspace:
            replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            session.execute(f'CREATE KEYSPACE IF NOT EXISTS "{keyspace}" WITH replication = {replication}')
            session.set_keyspace(keyspace)
        return session

    def advance(self, seconds):
        """Moves the server's clock ahead. Returns when everything that became due is done. Seconds may be a fraction."""
        return self._ask("POST", "/api/clock", {"advance_ms": round(seconds * 1000)})

    def clock(self, **change):
        """Changes the clock: `set_ms`, `advance_ms`, `mode` ("manual" or "running"). Without a change, shows it."""
        return self._ask("POST", "/api/clock", change) if change else self._ask("GET", "/api/clock")

    def reset(self, keep=None):
        """Empties the server. With `keep="schema"` tables stay, and so do prepared statements."""
        return self._ask("POST", "/api/reset", {"keep": keep} if keep else {})

    def faults(self, *faults, seed=1):
        """Replaces the fault plan: a dict for each fault. Without faults, ends all. Returns the new plan; see `fault_plan`."""
        if not faults:
            return self._ask("DELETE", "/api/faults")
        return self._ask("POST", "/api/faults", {"seed": seed, "fault": list(faults)})

    def fault_plan(self):
        """The fault plan in force: `["fault"]` lists its faults, each with its keys, `holds`, `matched` and `hit`."""
        return self._ask("GET", "/api/faults")

    def throttles(self, session):
        """The statements that were refused for want of request units, as rows of `system_cosmos.throttles`."""
        return list(session.execute("SELECT * FROM system_cosmos.throttles"))

    def charge(self, session, keyspace, table=None):
        """The request units that the tables of a keyspace, or one of them, were charged. Raises HelenusError when there is no such table."""
        rows = list(session.execute("SELECT keyspace_name, table_name, request_units FROM system_cosmos.tables"))
        charges = [row.request_units for row in rows if row.keyspace_name == keyspace and table in (None, row.table_name)]
        if not charges:
            known = ", ".join(sorted(f"{row.keyspace_name}.{row.table_name}" for row in rows)) or "none"
            wanted = f"table {keyspace}.{table}" if table else f"table in a keyspace {keyspace}"
            raise HelenusError(f"there is no {wanted}, so nothing is charged to it; the tables are: {known}")
        return sum(charges)

    @contextlib.contextmanager
    def charged(self, session, keyspace, table=None):
        """Counts what a block is charged:

            with helenus.charged(session, "shop") as units:
                session.execute(…)
            assert units.spent < 10
        """
        units = Units()
        before = self.charge(session, keyspace, table)
        yield units
        units.spent = self.charge(session, keyspace, table) - before

    @contextlib.contextmanager
    def assert_charge_max(self, session, keyspace, most, table=None):
        """Fails when a block is charged more request units than `most`."""
        with self.charged(session, keyspace, table) as units:
            yield units
        if units.spent > most:
            raise AssertionError(f"the charge is {units.spent:.2f} request units, more than {most:.2f}")

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.admin}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ADMIN_SECONDS_MAX) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise HelenusError(f"{method} {path}: {error.code} {error.read().decode().strip()}") from None
