"""The kit's own tests; they are also what its users copy from."""

import os
import signal
import subprocess
import sys
import time

import helenus as kit
import pytest
from cassandra import OperationTimedOut
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import OverloadedErrorMessage
from cassandra.policies import FallthroughRetryPolicy


@pytest.fixture
def table(cql):
    cql.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY, v text)")
    return cql


def count(session):
    return session.execute("SELECT count(*) FROM test.t").one().count


def test_a_row_expires_without_waiting(helenus, table):
    table.execute("INSERT INTO t (k, v) VALUES (1, 'soon gone') USING TTL 3600")
    assert count(table) == 1
    helenus.advance(seconds=3601)
    assert count(table) == 0


def test_writes_after_a_move_win(helenus, table):
    table.execute("INSERT INTO t (k, v) VALUES (1, 'before')")
    helenus.advance(seconds=3600)
    assert table.execute("UPDATE t SET v = 'after' WHERE k = 1 IF v = 'before'").was_applied
    assert table.execute("SELECT v FROM t WHERE k = 1").one().v == "after"
    table.execute("UPDATE t SET v = 'last' WHERE k = 1")
    assert table.execute("SELECT v FROM t WHERE k = 1").one().v == "last"


@pytest.mark.parametrize("number", range(3))
def test_each_test_begins_empty_and_prepared_statements_stay(helenus, table, number):
    assert count(table) == 0
    insert = table.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    table.execute(insert, (number, "x"))
    helenus.reset(keep="schema")
    table.execute(insert, (number, "x"))
    assert count(table) == 1


def test_a_fault_is_met(helenus, table):
    table.default_retry_policy = None
    helenus.faults({"action": "throttle", "table": "t", "statement": "write", "count": 1})
    statement = table.prepare("INSERT INTO t (k, v) VALUES (1, 'x')")
    statement.retry_policy = FallthroughRetryPolicy()
    with pytest.raises((OverloadedErrorMessage, NoHostAvailable, OperationTimedOut)):
        table.execute(statement)
    table.execute(statement)
    (fault,) = helenus.fault_plan()["fault"]
    assert (fault["action"], fault["matched"], fault["hit"]) == ("throttle", 2, 1)
    assert helenus.faults()["fault"] == []
    assert helenus.fault_plan()["fault"] == []


def test_a_throttle_is_met_and_ends(helenus, cql):
    cql.execute("CREATE TABLE IF NOT EXISTS small (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400")
    insert = cql.prepare("INSERT INTO small (k) VALUES (?)")
    insert.retry_policy = FallthroughRetryPolicy()

    def spend():
        for number in range(5000):
            cql.execute(insert, (number,))

    with pytest.raises((OverloadedErrorMessage, NoHostAvailable)):
        spend()
    assert helenus.throttles(cql)
    assert helenus.charge(cql, "test") > 100
    helenus.advance(seconds=10)
    cql.execute(insert, (1,))


def test_charges_are_counted(helenus, cql):
    cql.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)")
    with helenus.charged(cql, "test", "t") as units:
        cql.execute("INSERT INTO t (k) VALUES (1)")
    assert 1 < units.spent < 100
    with helenus.assert_charge_max(cql, "test", 100):
        cql.execute("INSERT INTO t (k) VALUES (2)")
    with pytest.raises(AssertionError, match="more than 0.10"):
        with helenus.assert_charge_max(cql, "test", 0.1):
            cql.execute("INSERT INTO t (k) VALUES (3)")


def test_the_charge_of_what_is_not_there_is_refused(helenus, cql):
    cql.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)")
    for wrong in (("nokeyspace",), ("test", "nosuch")):
        with pytest.raises(kit.HelenusError, match="test.t"):
            helenus.charge(cql, *wrong)
        with pytest.raises(kit.HelenusError):
            with helenus.charged(cql, *wrong):
                pass


def test_the_server_goes_with_a_killed_parent():
    script = "import helenus, time; server = helenus.start(); print(server.pid, flush=True); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        # It is the child of nobody now; where no process reaps it, it stays as a zombie.
        with open(f"/proc/{pid}/stat") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                return
        time.sleep(0.01)
    raise AssertionError(f"the server {pid} is still there")


def test_what_the_server_refuses_is_told():
    with pytest.raises(kit.HelenusError, match="durability"):
        kit.start(durability="never")
    with kit.start() as server, pytest.raises(kit.HelenusError, match="409 .*never goes back"):
        server.clock(set_ms=0)
    with pytest.raises(kit.HelenusError, match="is not a program"):
        kit.start(program="/nowhere/helenus")


@pytest.mark.parametrize("value", [True, False])
def test_a_setting_takes_a_boolean(value):
    with kit.start(burst_capacity=value) as server:
        assert server.clock()


def test_cosmos_needs_an_account():
    with kit.start(cosmos=True) as server:
        session = server.session("shop", protocol_version=4)
        session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY)")
        session.execute("INSERT INTO shop.orders (id) VALUES (1)")
        assert server.account and server.certificate_pem
