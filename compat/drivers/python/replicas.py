"""Four virtual nodes and a fault plan through the Python driver: `replicas.py HOST:PORT ADMIN_HOST:PORT ADMIN_TOKEN`, a server with `--nodes 4`.
A line for each test, `replicas: N passed, N failed` at the end."""

import json
import sys
import time
import traceback
import urllib.request

from cassandra import ConsistencyLevel, ReadTimeout, Unavailable, WriteTimeout, WriteType
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import ConstantReconnectionPolicy, DCAwareRoundRobinPolicy, FallthroughRetryPolicy, TokenAwarePolicy
from cassandra.protocol import OverloadedErrorMessage
from cassandra.query import BatchStatement, BatchType, SimpleStatement

HOST, PORT = sys.argv[1].rsplit(":", 1)
ADMIN = sys.argv[2]
TOKEN = sys.argv[3]
KS = "compat_replicas"
NODES = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]
TESTS = []


def test(f):
    TESTS.append(f)
    return f


def same(got, expected):
    assert got == expected, f"expected {expected!r}, got {got!r}"


def faults(*plan):
    """Puts a plan in force; none: ends all faults."""
    url = f"http://{ADMIN}/api/faults"
    if plan:
        body = json.dumps({"seed": 1, "fault": list(plan)}).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    else:
        request = urllib.request.Request(url, method="DELETE")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def connect(retry=True):
    more = {} if retry else {"retry_policy": FallthroughRetryPolicy()}
    balancing = TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1"))
    profile = ExecutionProfile(load_balancing_policy=balancing, request_timeout=10, **more)
    cluster = Cluster(
        [HOST],
        port=int(PORT),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(0.2, None),
    )
    return cluster, cluster.connect()


def until(what, condition):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"waited 30 s in vain: {what}")


def up(cluster):
    return sorted(host.address for host in cluster.metadata.all_hosts() if host.is_up)


def until_up_are(what, cluster, session, nodes):
    """Asks all nodes meanwhile: the driver leaves DOWN unheard while it believes its connections to the node, which it only looks at in use."""

    def asked():
        futures = [session.execute_async(at(ConsistencyLevel.ONE, f"SELECT v FROM {KS}.t WHERE k = {key}")) for key in range(16)]
        for future in futures:
            try:
                future.result()
            except Exception:
                pass  # What a connection that is cut makes of it is not what is asked here.
        return up(cluster) == nodes

    until(what, asked)


def at(level, text):
    return SimpleStatement(text, consistency_level=level)


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


@test
def four_nodes_are_up_and_hold_everything(cluster, session):
    until("four nodes up", lambda: up(cluster) == NODES)
    same(len({host.host_id for host in cluster.metadata.all_hosts()}), 4)
    same(len(cluster.metadata.token_map.ring), 16)
    for key in range(20):
        replicas = cluster.metadata.get_replicas(KS, bytes([0, 0, 0, key]))
        same(sorted(host.address for host in replicas), NODES)
    asked = set()
    select = session.prepare(f"SELECT v FROM {KS}.t WHERE k = ?")
    for key in range(64):
        future = session.execute_async(select, [key])
        future.result()
        asked.add(future.coordinator_host.address)
    same(sorted(asked), NODES)


@test
def a_node_goes_down_and_comes_back(cluster, session):
    faults({"action": "down", "node": 3})
    until_up_are("DOWN is told", cluster, session, ["127.0.0.1", "127.0.0.2", "127.0.0.4"])
    for key in range(40):
        session.execute(at(ConsistencyLevel.QUORUM, f"INSERT INTO {KS}.t (k, v) VALUES ({key}, {key})"))
        same(session.execute(at(ConsistencyLevel.QUORUM, f"SELECT v FROM {KS}.t WHERE k = {key}")).one().v, key)
    error = raises(Unavailable, lambda: session.execute(at(ConsistencyLevel.ALL, f"SELECT v FROM {KS}.t WHERE k = 1")))
    same((error.consistency, error.required_replicas, error.alive_replicas), (ConsistencyLevel.ALL, 4, 3))
    faults()
    until("UP is told", lambda: up(cluster) == NODES)
    same(session.execute(at(ConsistencyLevel.ALL, f"SELECT v FROM {KS}.t WHERE k = 39")).one().v, 39)


@test
def with_two_nodes_down_writes_stop_and_one_reads_on(cluster, session):
    session.execute(at(ConsistencyLevel.ONE, f"INSERT INTO {KS}.t (k, v) VALUES (1, 1)"))
    faults({"action": "down", "node": 2}, {"action": "down", "node": 4})
    until_up_are("DOWN is told twice", cluster, session, ["127.0.0.1", "127.0.0.3"])
    write = at(ConsistencyLevel.ONE, f"INSERT INTO {KS}.t (k, v) VALUES (1, 2)")
    error = raises(Unavailable, lambda: session.execute(write))
    same((error.consistency, error.required_replicas, error.alive_replicas), (ConsistencyLevel.ONE, 3, 2))
    conditional = f"UPDATE {KS}.t SET v = 3 WHERE k = 1 IF v = 1"
    error = raises(Unavailable, lambda: session.execute(conditional))
    same((error.consistency, error.required_replicas, error.alive_replicas), (ConsistencyLevel.SERIAL, 3, 2))
    same(session.execute(at(ConsistencyLevel.ONE, f"SELECT v FROM {KS}.t WHERE k = 1")).one().v, 1)
    faults()
    until("UP is told twice", lambda: up(cluster) == NODES)
    same(session.execute(at(ConsistencyLevel.ALL, f"SELECT v FROM {KS}.t WHERE k = 1")).one().v, 1)


@test
def timeouts_have_their_counts(cluster, session):
    cluster, session = connect(retry=False)
    try:
        read = at(ConsistencyLevel.QUORUM, f"SELECT v FROM {KS}.t WHERE k = 1")
        write = at(ConsistencyLevel.QUORUM, f"INSERT INTO {KS}.t (k, v) VALUES (1, 5)")
        faults({"action": "timeout", "statement": "read", "received": 3, "data-present": False})
        error = raises(ReadTimeout, lambda: session.execute(read))
        same((error.consistency, error.required_responses, error.received_responses), (ConsistencyLevel.QUORUM, 3, 3))
        same(error.data_retrieved, False)
        faults({"action": "timeout-after"})
        error = raises(WriteTimeout, lambda: session.execute(write))
        same((error.required_responses, error.received_responses, error.write_type), (3, 2, WriteType.SIMPLE))
        batch = BatchStatement(BatchType.LOGGED, consistency_level=ConsistencyLevel.ALL)
        batch.add(f"INSERT INTO {KS}.t (k, v) VALUES (2, 5)")
        error = raises(WriteTimeout, lambda: session.execute(batch))
        same((error.required_responses, error.received_responses, error.write_type), (4, 3, WriteType.BATCH))
        # Outcome unknown: here it was done.
        faults()
        same([session.execute(f"SELECT v FROM {KS}.t WHERE k = {key}").one().v for key in (1, 2)], [5, 5])
        faults({"action": "throttle", "ms": 40})
        error = raises(OverloadedErrorMessage, lambda: session.execute(read))
        assert "RetryAfterMs=40," in str(error), error
    finally:
        cluster.shutdown()


@test
def the_drivers_own_policy_gets_past_a_fault(cluster, session):
    # Its default policy asks again once where enough replicas answered but the data did not come.
    faults({"action": "timeout", "statement": "read", "received": 3, "data-present": False, "count": 1})
    same(session.execute(at(ConsistencyLevel.QUORUM, f"SELECT v FROM {KS}.t WHERE k = 1")).one().v, 5)
    # And another node where one says that too few are alive.
    faults({"action": "unavailable", "count": 1})
    same(session.execute(at(ConsistencyLevel.QUORUM, f"SELECT v FROM {KS}.t WHERE k = 1")).one().v, 5)


def main():
    cluster, session = connect()
    session.execute(f"DROP KEYSPACE IF EXISTS {KS}")
    replication = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 4}"
    session.execute(f"CREATE KEYSPACE {KS} WITH replication = {replication}")
    session.execute(f"CREATE TABLE {KS}.t (k int PRIMARY KEY, v int)")
    failed = 0
    for run in TESTS:
        try:
            run(cluster, session)
            print(f"ok   {run.__name__}")
        except Exception:  # noqa: BLE001: the next test is to run whatever this one met
            failed += 1
            print(f"FAIL {run.__name__}")
            traceback.print_exc()
        finally:
            faults()
            until("all nodes up again", lambda: up(cluster) == NODES)
    session.execute(f"DROP KEYSPACE {KS}")
    cluster.shutdown()
    print(f"replicas: {len(TESTS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
