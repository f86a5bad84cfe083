"""What an application does through the Python driver: types, paging, prepared statements, batches, user types, metadata,
schema events, token awareness. `suite.py HOST:PORT`; a line for each test, `python: N passed, N failed` at the end."""

import datetime
import decimal
import sys
import threading
import time
import traceback
import uuid

from cassandra import AlreadyExists, ConsistencyLevel, InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.protocol import SyntaxException
from cassandra.query import BatchStatement, BatchType, SimpleStatement, dict_factory
from cassandra.util import Date, Duration, SortedSet, Time

HOST, PORT = sys.argv[1].rsplit(":", 1)
KS = "compat_python"
TESTS = []


def test(f):
    TESTS.append(f)
    return f


def connect(version=None, **more):
    profile = ExecutionProfile(load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1")))
    versions = {"protocol_version": version} if version else {}
    cluster = Cluster([HOST], port=int(PORT), execution_profiles={EXEC_PROFILE_DEFAULT: profile}, **versions, **more)
    return cluster, cluster.connect()


def same(got, expected):
    assert got == expected, f"expected {expected!r}, got {got!r}"


SCALARS = {
    "ascii": ["", "abc"],
    "bigint": [0, -(2**63), 2**63 - 1],
    "blob": [b"", b"\x00\xff", bytes(range(256))],
    "boolean": [True, False],
    "date": [Date(0), Date(18321), Date(-1)],
    "decimal": [decimal.Decimal("0"), decimal.Decimal("-1.50"), decimal.Decimal("1E+10")],
    "double": [0.0, -1.5e300, float("inf")],
    "duration": [Duration(1, 2, 3), Duration(-1, -2, -3)],
    "float": [0.5, -1.0],
    "inet": ["127.0.0.1", "::1"],
    "int": [0, -(2**31), 2**31 - 1],
    "smallint": [0, -(2**15), 2**15 - 1],
    "text": ["", "é日本😀", "x" * 100_000],
    "time": [Time(0), Time(86_399_999_999_999)],
    "timestamp": [datetime.datetime(2020, 2, 29, 1, 2, 3, 4000), datetime.datetime(1969, 12, 31, 23, 59, 59)],
    "timeuuid": [uuid.UUID("50554d6e-29bb-11e5-b345-feff819cdc9f")],
    "tinyint": [0, -128, 127],
    "uuid": [uuid.UUID("123e4567-e89b-42d3-a456-426614174000")],
    "varint": [0, -129, 2**128],
}
COLLECTIONS = {
    "list<int>": [[1, 2, 1], [5]],
    "set<text>": [SortedSet(["b", "a"])],
    "map<text, int>": [{"a": 1, "b": 2}],
    "frozen<list<int>>": [[], [3, 1]],
    "frozen<set<int>>": [SortedSet([3, 1])],
    "tuple<int, text>": [(1, "a"), (1, None)],
    "list<frozen<tuple<int, int>>>": [[(1, 2), (3, 4)]],
    "map<int, frozen<list<text>>>": [{1: ["a"], 2: []}],
    "vector<float, 3>": [[1.0, 2.0, 3.5]],
    "vector<text, 2>": [["a", "bc"]],
}


def round_trip(session, kind, values, number):
    session.execute(f"CREATE TABLE {KS}.type_{number} (k int PRIMARY KEY, v {kind})")
    insert = session.prepare(f"INSERT INTO {KS}.type_{number} (k, v) VALUES (?, ?)")
    select = session.prepare(f"SELECT v FROM {KS}.type_{number} WHERE k = ?")
    for k, value in enumerate([*values, None]):
        session.execute(insert, (k, value))
        same(session.execute(select, (k,)).one().v, value)


@test
def scalar_types(session):
    for number, (kind, values) in enumerate(SCALARS.items()):
        round_trip(session, kind, values, number)


@test
def collection_types(session):
    for number, (kind, values) in enumerate(COLLECTIONS.items()):
        round_trip(session, kind, values, 100 + number)


@test
def literals_of_the_driver(session):
    session.execute(f"CREATE TABLE {KS}.lit (k int PRIMARY KEY, t text, l list<int>, m map<text, int>, u uuid, d double)")
    row = (1, "it's", [1, 2], {"a": 1}, uuid.UUID(int=5), 2.5)
    session.execute(f"INSERT INTO {KS}.lit (k, t, l, m, u, d) VALUES (%s, %s, %s, %s, %s, %s)", row)
    got = session.execute(f"SELECT k, t, l, m, u, d FROM {KS}.lit WHERE k = %s", (1,)).one()
    same(tuple(got), row)


@test
def paging(session):
    session.execute(f"CREATE TABLE {KS}.pages (k int, c int, PRIMARY KEY (k, c))")
    insert = session.prepare(f"INSERT INTO {KS}.pages (k, c) VALUES (?, ?)")
    execute_concurrent_with_args(session, insert, [(k, c) for k in range(3) for c in range(100)])
    for size in (1, 7, 50, 100, 1000):
        statement = SimpleStatement(f"SELECT c FROM {KS}.pages WHERE k = 1", fetch_size=size)
        same([r.c for r in session.execute(statement)], list(range(100)))
    statement = SimpleStatement(f"SELECT k, c FROM {KS}.pages", fetch_size=33)
    same(len({(r.k, r.c) for r in session.execute(statement)}), 300)
    statement = SimpleStatement(f"SELECT c FROM {KS}.pages WHERE k = 2", fetch_size=10)
    first = session.execute(statement)
    rest = session.execute(statement, paging_state=first.paging_state)
    same(rest.current_rows[0].c, 10)


@test
def prepared_statements(session):
    session.execute(f"CREATE TABLE {KS}.prep (a int, b text, c int, v int, PRIMARY KEY ((a, b), c))")
    insert = session.prepare(f"INSERT INTO {KS}.prep (c, b, a, v) VALUES (?, ?, ?, ?)")
    same([c.name for c in insert.column_metadata], ["c", "b", "a", "v"])
    same(insert.routing_key_indexes, [2, 1])
    session.execute(insert, (1, "x", 2, 3))
    session.execute(insert, {"a": 2, "b": "x", "c": 2, "v": 4})
    session.execute(insert.bind((3, "x", 2)))
    same([(r.c, r.v) for r in session.execute(f"SELECT c, v FROM {KS}.prep")], [(1, 3), (2, 4), (3, None)])
    select = session.prepare(f"SELECT * FROM {KS}.prep WHERE a = ? AND b = ?")
    same(session.execute(select, (2, "x")).one()._fields, ("a", "b", "c", "v"))
    session.execute(f"ALTER TABLE {KS}.prep ADD w text")
    same(session.execute(select, (2, "x")).one().c, 1)


@test
def many_in_flight(session):
    session.execute(f"CREATE TABLE {KS}.many (k int PRIMARY KEY, v int)")
    insert = session.prepare(f"INSERT INTO {KS}.many (k, v) VALUES (?, ?)")
    results = execute_concurrent_with_args(session, insert, [(i, i * i) for i in range(3000)], concurrency=200)
    assert all(ok for ok, _ in results)
    select = session.prepare(f"SELECT v FROM {KS}.many WHERE k = ?")
    results = execute_concurrent_with_args(session, select, [(i,) for i in range(3000)], concurrency=200)
    same([r.one().v for _, r in results], [i * i for i in range(3000)])


@test
def batches(session):
    session.execute(f"CREATE TABLE {KS}.batched (k int, c int, v text, PRIMARY KEY (k, c))")
    session.execute(f"CREATE TABLE {KS}.batch_n (k int PRIMARY KEY, n counter)")
    insert = session.prepare(f"INSERT INTO {KS}.batched (k, c, v) VALUES (?, ?, ?)")
    batch = BatchStatement()
    for c in range(10):
        batch.add(insert, (1, c, str(c)))
    batch.add(f"INSERT INTO {KS}.batched (k, c, v) VALUES (%s, %s, %s)", (1, 10, "ten"))
    batch.add(SimpleStatement(f"DELETE FROM {KS}.batched WHERE k = 1 AND c = 0"))
    session.execute(batch)
    same(len(session.execute(f"SELECT * FROM {KS}.batched").all()), 10)
    count = session.prepare(f"UPDATE {KS}.batch_n SET n = n + ? WHERE k = ?")
    batch = BatchStatement(batch_type=BatchType.COUNTER)
    batch.add(count, (5, 1))
    batch.add(count, (6, 1))
    session.execute(batch)
    same(session.execute(f"SELECT n FROM {KS}.batch_n").one().n, 11)
    batch = BatchStatement(batch_type=BatchType.UNLOGGED, consistency_level=ConsistencyLevel.LOCAL_QUORUM)
    batch.add(insert, (2, 1, None))
    session.execute(batch)
    same(session.execute(f"SELECT v FROM {KS}.batched WHERE k = 2").one().v, None)


@test
def conditional_updates(session):
    session.execute(f"CREATE TABLE {KS}.lwt (k int PRIMARY KEY, v int)")
    assert session.execute(f"INSERT INTO {KS}.lwt (k, v) VALUES (1, 1) IF NOT EXISTS").was_applied
    again = session.execute(f"INSERT INTO {KS}.lwt (k, v) VALUES (1, 2) IF NOT EXISTS")
    assert not again.was_applied
    same(again.one().v, 1)
    update = session.prepare(f"UPDATE {KS}.lwt SET v = ? WHERE k = ? IF v = ?")
    assert session.execute(update, (2, 1, 1)).was_applied
    assert not session.execute(update, (3, 1, 1)).was_applied


@test
def user_types(session):
    session.execute(f"CREATE TYPE {KS}.address (street text, number int, tags frozen<set<text>>)")
    session.execute(f"CREATE TABLE {KS}.people (k int PRIMARY KEY, a address, l list<frozen<address>>)")

    class Address:
        def __init__(self, street=None, number=None, tags=None):
            self.street, self.number, self.tags = street, number, tags

    session.cluster.register_user_type(KS, "address", Address)
    insert = session.prepare(f"INSERT INTO {KS}.people (k, a, l) VALUES (?, ?, ?)")
    session.execute(insert, (1, Address("s", 5, {"x"}), [Address("t"), Address(None, 1)]))
    row = session.execute(f"SELECT * FROM {KS}.people").one()
    same((row.a.street, row.a.number, set(row.a.tags)), ("s", 5, {"x"}))
    same([(a.street, a.number) for a in row.l], [("t", None), (None, 1)])
    session.execute(f"UPDATE {KS}.people SET a.number = 6 WHERE k = 1")
    same(session.execute(f"SELECT a.number AS n FROM {KS}.people").one().n, 6)


@test
def metadata(session):
    session.execute(
        f"CREATE TABLE {KS}.meta (a int, b text, c timeuuid, d int, s int static, v list<int>, PRIMARY KEY ((a, b), c, d))"
        " WITH CLUSTERING ORDER BY (c DESC, d ASC) AND comment = 'told' AND gc_grace_seconds = 5"
    )
    found = session.cluster.metadata
    keyspace = found.keyspaces[KS]
    same(keyspace.replication_strategy.name, "SimpleStrategy")
    table = keyspace.tables["meta"]
    same([c.name for c in table.partition_key], ["a", "b"])
    same([(c.name, c.is_reversed) for c in table.clustering_key], [("c", True), ("d", False)])
    same((table.columns["s"].is_static, table.columns["v"].cql_type), (True, "list<int>"))
    same((table.options["comment"], table.options["gc_grace_seconds"]), ("told", 5))
    assert "CREATE TABLE compat_python.meta" in table.export_as_string()
    same(sorted(keyspace.user_types), ["address"])
    assert "clients" in found.keyspaces["system_views"].tables
    host = found.all_hosts()[0]
    same((host.datacenter, host.rack), ("datacenter1", "rack1"))
    assert found.cluster_name and found.partitioner.endswith("Murmur3Partitioner")


@test
def schema_events(session):
    other, told = connect()
    try:
        session.execute(f"CREATE TABLE {KS}.event (k int PRIMARY KEY)")
        wait(lambda: "event" in other.metadata.keyspaces[KS].tables)
        session.execute(f"ALTER TABLE {KS}.event ADD v text")
        wait(lambda: "v" in other.metadata.keyspaces[KS].tables["event"].columns)
        session.execute(f"CREATE TYPE {KS}.event_type (a int)")
        wait(lambda: "event_type" in other.metadata.keyspaces[KS].user_types)
        session.execute(f"DROP TABLE {KS}.event")
        wait(lambda: "event" not in other.metadata.keyspaces[KS].tables)
        session.execute(f"DROP TYPE {KS}.event_type")
        wait(lambda: "event_type" not in other.metadata.keyspaces[KS].user_types)
    finally:
        other.shutdown()


def wait(holds):
    for _ in range(100):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("no schema event within ten seconds")


@test
def token_awareness(session):
    session.execute(f"CREATE TABLE {KS}.tok (a int, b text, PRIMARY KEY ((a, b)))")
    insert = session.prepare(f"INSERT INTO {KS}.tok (a, b) VALUES (?, ?)")
    token_map = session.cluster.metadata.token_map
    keys = [(i, "é" * (i % 20)) for i in range(100)]
    for key in keys:
        session.execute(insert, key)
    for row in session.execute(f"SELECT a, b, token(a, b) AS t FROM {KS}.tok"):
        bound = insert.bind((row.a, row.b))
        same(token_map.token_class.from_key(bound.routing_key).value, row.t)
        assert session.cluster.metadata.get_replicas(KS, bound.routing_key)
    tokens = [r.t for r in session.execute(f"SELECT token(a, b) AS t FROM {KS}.tok")]
    same(tokens, sorted(tokens))


@test
def errors(session):
    for statement, kind in [
        ("SELEC * FROM t", SyntaxException),
        (f"SELECT * FROM {KS}.nothing", InvalidRequest),
        (f"SELECT nothing FROM {KS}.many", InvalidRequest),
        (f"CREATE TABLE {KS}.many (k int PRIMARY KEY)", AlreadyExists),
        (f"CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}", AlreadyExists),
    ]:
        try:
            session.execute(statement)
        except kind:
            continue
        raise AssertionError(f"{statement}: no {kind.__name__}")


@test
def tracing(session):
    result = session.execute(f"SELECT * FROM {KS}.many WHERE k = 1", trace=True)
    trace = result.get_query_trace(max_wait_sec=10)
    assert trace.duration is not None and trace.events and trace.request_type


@test
def consistency_levels_and_row_factories(session):
    for level in ("ONE", "LOCAL_ONE", "QUORUM", "LOCAL_QUORUM", "ALL"):
        level = getattr(ConsistencyLevel, level)
        statement = SimpleStatement(f"SELECT v FROM {KS}.many WHERE k = 2", consistency_level=level)
        same(session.execute(statement).one().v, 4)
    profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=dict_factory)
    same(session.execute(f"SELECT k, v FROM {KS}.many WHERE k = 2", execution_profile=profile).one(), {"k": 2, "v": 4})


@test
def every_protocol_version_and_compression(session):
    for version in (3, 4, 5):
        for compression in (False, "lz4"):
            cluster, other = connect(version, compression=compression)
            try:
                same(cluster.protocol_version, version)
                statement = other.prepare(f"SELECT v FROM {KS}.many WHERE k = ?")
                same(other.execute(statement, (3,)).one().v, 9)
                long = "z" * 200_000
                other.execute(f"INSERT INTO {KS}.type_12 (k, v) VALUES (%s, %s)", (50, long))
                same(other.execute(f"SELECT v FROM {KS}.type_12 WHERE k = 50").one().v, long)
            finally:
                cluster.shutdown()


@test
def keyspace_of_the_session(session):
    session.set_keyspace(KS)
    same(session.execute("SELECT v FROM many WHERE k = 5").one().v, 25)
    done = threading.Event()
    session.execute_async("SELECT v FROM many WHERE k = 6").add_callback(lambda rows: done.set())
    assert done.wait(5)


def main():
    cluster, session = connect()
    session.execute(f"DROP KEYSPACE IF EXISTS {KS}")
    session.execute(f"CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    failed = 0
    for f in TESTS:
        try:
            f(session)
            print(f"PASS {f.__name__}")
        except Exception as e:
            failed += 1
            at = traceback.extract_tb(e.__traceback__)[-1]
            print(f"FAIL {f.__name__}: {type(e).__name__} line {at.lineno}: {str(e)[:300]}")
    session.execute(f"DROP KEYSPACE IF EXISTS {KS}")
    cluster.shutdown()
    print(f"python: {len(TESTS) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
