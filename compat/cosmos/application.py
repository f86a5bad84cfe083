"""An application as written for Azure Cosmos DB for Apache Cassandra: TLS, account and key, one region, and the published retry policy.

    application.py HOST:PORT CERTIFICATE ACCOUNT KEY

It makes a table of 400 RU/s, writes and reads more than that allows, and must complete: every row there, each refusal retried after the
time that it told of. The rule by which the time is found is that of the published policy of the Java driver
(azure-cosmos-cassandra-extensions, CosmosRetryPolicy): split at commas, then at equals signs, and the part named RetryAfterMs is a number.
"""

import ssl
import struct
import sys
import threading
import time
import uuid

from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import DCAwareRoundRobinPolicy, RetryPolicy
from cassandra.query import BatchStatement, BatchType, dict_factory

ROWS = 300
WRITERS = 4
UNITS_PER_SECOND = 400


def retry_after_millis(text):
    """The published rule; None: the text tells no time."""
    for token in text.split(","):
        parts = token.split("=")
        if len(parts) == 2 and parts[0].strip() == "RetryAfterMs":
            return int(parts[1])
    return None


class CosmosRetryPolicy(RetryPolicy):
    def __init__(self, retries_max):
        self.retries_max = retries_max
        self.refused = 0
        self.waited_millis = 0
        self.lock = threading.Lock()

    def on_request_error(self, query, consistency, error, retry_num):
        text = str(getattr(error, "message", error))
        millis = retry_after_millis(text)
        if millis is None or retry_num >= self.retries_max:
            return self.RETHROW, None
        with self.lock:
            self.refused += 1
            self.waited_millis += millis
        # As the published policy does: the refused request's own thread waits.
        time.sleep(millis / 1000)
        return self.RETRY, consistency


def expect(condition, what):
    if not condition:
        sys.exit(f"cosmos: {what}")


def charge(future):
    """RequestCharge of an answer: a double of 8 bytes, most significant first."""
    payload = future.custom_payload or {}
    expect("RequestCharge" in payload, f"no RequestCharge with {future.query}")
    return struct.unpack(">d", payload["RequestCharge"])[0]


def main(address, certificate, account, key):
    host, port = address.rsplit(":", 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = True
    policy = CosmosRetryPolicy(retries_max=20)
    profile = ExecutionProfile(
        load_balancing_policy=DCAwareRoundRobinPolicy(local_dc="West US"),
        retry_policy=policy,
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        request_timeout=90,
        row_factory=dict_factory,
    )
    cluster = Cluster(
        [host],
        port=int(port),
        auth_provider=PlainTextAuthProvider(account, key),
        ssl_context=context,
        ssl_options={"server_hostname": host},
        protocol_version=4,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        idle_heartbeat_interval=30,
    )
    session = cluster.connect()
    expect(cluster.metadata.cluster_name == "CosmosProd", f"cluster {cluster.metadata.cluster_name}")

    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS sample WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter': 1}"
    )
    session.execute(
        "CREATE TABLE IF NOT EXISTS sample.orders (customer text, id uuid, at timestamp, note text, total decimal, "
        f"PRIMARY KEY (customer, id)) WITH cosmosdb_provisioned_throughput = {UNITS_PER_SECOND} AND gc_grace_seconds = 0"
    )
    insert = session.prepare("INSERT INTO sample.orders (customer, id, at, note, total) VALUES (?, ?, toTimestamp(now()), ?, ?)")
    select = session.prepare("SELECT note FROM sample.orders WHERE customer = ? AND id = ?")

    rows = [(f"customer {number % 20}", uuid.uuid4(), "n" * 1000, number) for number in range(ROWS)]
    charged, wrong, lock = [0.0], [], threading.Lock()

    def work(part):
        try:
            for row in part:
                spent = 0.0
                future = session.execute_async(insert, row)
                future.result()
                spent += charge(future)
                future = session.execute_async(select, row[:2])
                found = future.result().one()
                expect(found and found["note"] == row[2], "a row is not as written")
                spent += charge(future)
                with lock:
                    charged[0] += spent
        except (Exception, SystemExit) as error:
            with lock:
                wrong.append(error)

    began = time.monotonic()
    threads = [threading.Thread(target=work, args=(rows[number::WRITERS],)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    expect(not wrong, f"{len(wrong)} writers failed, the first: {wrong[:1]}")

    batch = BatchStatement(batch_type=BatchType.UNLOGGED)
    for number in range(10):
        batch.add(insert, ("customer 0", uuid.uuid4(), "b", number))
    session.execute(batch)
    logged = BatchStatement()
    logged.add(insert, ("customer 0", uuid.uuid4(), "b", 1))
    try:
        session.execute(logged)
        sys.exit("cosmos: a logged batch was taken")
    except Exception as error:
        expect("Logged batches are not supported by the service yet" in str(error), f"a logged batch: {error}")

    session.default_fetch_size = 50
    expect(len(list(session.execute("SELECT id FROM sample.orders"))) == ROWS + 10, "pages do not hold every row")
    count = session.execute("SELECT count(*) FROM sample.orders").one()
    expect(count == {"system.count(*)": ROWS + 10}, f"count: {count}")
    expect(policy.refused > 0, "nothing was refused, so nothing was retried")
    # One second's worth is there at the beginning, and each of those at work may borrow once.
    expect(charged[0] <= UNITS_PER_SECOND * (took + 2), f"{charged[0]:.0f} RU in {took:.1f} s")
    cluster.shutdown()
    print(
        f"cosmos: {ROWS} orders written and read in {took:.1f} s, {charged[0]:.0f} RU at {UNITS_PER_SECOND} RU/s, "
        f"{policy.refused} refusals retried after {policy.waited_millis} ms in all"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
