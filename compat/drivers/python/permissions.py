"""permissions.py CASSANDRA OURS: statement by permission by resource by way of getting it, asked of both.

Both servers ask for a login, cassandra/cassandra. Every role is made anew on both; every statement is asked of both, and an answer
that differs in its kind, its code or its text fails the run. What a statement changed is put back before the next.
"""

import re
import sys

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.query import SimpleStatement

SCHEMA = """
CREATE KEYSPACE pk WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
CREATE KEYSPACE po WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
CREATE TABLE pk.t (p int, c int, v int, PRIMARY KEY (p, c))
CREATE TABLE pk.u (p int PRIMARY KEY, v int)
CREATE TABLE po.t (p int PRIMARY KEY, v int)
CREATE TYPE pk.ty (a int)
CREATE INDEX ti ON pk.t (v)
CREATE FUNCTION pk.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'
CREATE FUNCTION pk.g (a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return b;'
CREATE AGGREGATE pk.ag (int) SFUNC g STYPE int FINALFUNC f INITCOND 0
CREATE ROLE target
CREATE ROLE other
INSERT INTO pk.t (p, c, v) VALUES (1, 1, 1)
""".strip().splitlines()

# A statement, and what puts back what it changed. `{me}` is the role that asks.
STATEMENTS = [
    ("SELECT * FROM pk.t", []),
    ("SELECT v FROM pk.t WHERE v = 1", []),
    ("SELECT * FROM po.t", []),
    ("SELECT role FROM system_auth.roles WHERE role = 'target'", []),
    ("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'pk'", []),
    ("INSERT INTO pk.t (p, c, v) VALUES (1, 1, 1)", []),
    ("INSERT INTO pk.t (p, c, v) VALUES (1, 1, 1) IF NOT EXISTS", []),
    ("UPDATE pk.t SET v = 1 WHERE p = 1 AND c = 1", []),
    ("UPDATE pk.t SET v = 1 WHERE p = 1 AND c = 1 IF v = 1", []),
    ("DELETE FROM pk.t WHERE p = 2", []),
    ("DELETE FROM pk.t WHERE p = 2 AND c = 1 IF EXISTS", []),
    ("BEGIN BATCH INSERT INTO pk.t (p, c, v) VALUES (1, 1, 1); INSERT INTO pk.u (p, v) VALUES (1, 1); APPLY BATCH", []),
    ("TRUNCATE po.t", []),
    ("CREATE KEYSPACE pn WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ["DROP KEYSPACE pn"]),
    ("ALTER KEYSPACE pk WITH durable_writes = true", []),
    ("DROP KEYSPACE IF EXISTS pn", []),
    ("CREATE TABLE pk.n (p int PRIMARY KEY)", ["DROP TABLE pk.n"]),
    ("ALTER TABLE pk.t WITH comment = 'c'", []),
    ("DROP TABLE IF EXISTS pk.n", []),
    ("CREATE INDEX tn ON pk.t (c)", ["DROP INDEX pk.tn"]),
    ("DROP INDEX IF EXISTS pk.tn", []),
    ("DROP INDEX pk.ti", ["CREATE INDEX ti ON pk.t (v)"]),
    ("CREATE TYPE pk.tz (a int)", ["DROP TYPE pk.tz"]),
    ("ALTER TYPE pk.ty ADD IF NOT EXISTS a int", []),
    ("DROP TYPE IF EXISTS pk.tz", []),
    ("SELECT pk.f(v) FROM pk.t", []),
    ("SELECT pk.g(v, pk.f(v)) FROM pk.t WHERE p = pk.f(1)", []),
    ("SELECT pk.ag(v) FROM pk.t", []),
    ("INSERT INTO pk.u (p, v) VALUES (pk.f(1), pk.g(1, 1))", []),
    ("UPDATE pk.t SET v = pk.f(1) WHERE p = 1 AND c = 1 IF v = pk.g(1, 1)", []),
    ("DELETE FROM pk.u WHERE p = pk.f(2)", []),
    ("BEGIN BATCH INSERT INTO pk.u (p, v) VALUES (1, 1); INSERT INTO pk.u (p, v) VALUES (pk.f(1), 1); APPLY BATCH", []),
    ("CREATE FUNCTION pk.n (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'", ["DROP FUNCTION pk.n"]),
    ("CREATE OR REPLACE FUNCTION pk.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'", []),
    ("CREATE AGGREGATE pk.an (int) SFUNC g STYPE int FINALFUNC f INITCOND 0", ["DROP AGGREGATE pk.an"]),
    ("CREATE OR REPLACE AGGREGATE pk.ag (int) SFUNC g STYPE int FINALFUNC f INITCOND 0", []),
    ("DROP FUNCTION IF EXISTS pk.n", []),
    ("DROP FUNCTION pk.f", []),
    ("DROP AGGREGATE pk.ag", ["CREATE AGGREGATE pk.ag (int) SFUNC g STYPE int FINALFUNC f INITCOND 0"]),
    ("GRANT EXECUTE ON FUNCTION pk.f (int) TO other", ["REVOKE EXECUTE ON FUNCTION pk.f (int) FROM other"]),
    ("REVOKE EXECUTE ON FUNCTION pk.g (int, int) FROM other", []),
    ("LIST ALL PERMISSIONS ON FUNCTION pk.f (int) OF {me}", []),
    ("USE pk", []),
    ("SELECT * FROM system.built_views", []),
    ("SELECT * FROM system_views.settings WHERE name = 'none'", []),
    ("INSERT INTO system.local (key) VALUES ('x')", []),
    ("INSERT INTO system_auth.roles (role) VALUES ('zz')", ["DELETE FROM system_auth.roles WHERE role = 'zz'"]),
    ("TRUNCATE system_auth.cidr_groups", []),
    ("ALTER KEYSPACE system_auth WITH durable_writes = true", []),
    ("ALTER TABLE system_auth.roles WITH comment = 'c'", []),
    ("DROP KEYSPACE system_traces", []),
    ("GRANT ALTER ON KEYSPACE system_auth TO other", ["REVOKE ALTER ON KEYSPACE system_auth FROM other"]),
    ("GRANT MODIFY ON KEYSPACE system_auth TO other", []),
    ("CREATE ROLE fresh", ["DROP ROLE fresh"]),
    ("CREATE ROLE fresh WITH SUPERUSER = true", ["DROP ROLE fresh"]),
    ("ALTER ROLE target WITH LOGIN = false", []),
    ("ALTER ROLE {me} WITH LOGIN = true", []),
    ("ALTER ROLE {me} WITH SUPERUSER = true", []),
    ("DROP ROLE other", ["CREATE ROLE other"]),
    ("GRANT other TO target", ["REVOKE other FROM target"]),
    ("REVOKE other FROM target", []),
    ("GRANT SELECT ON pk.t TO other", ["REVOKE SELECT ON pk.t FROM other"]),
    ("GRANT MODIFY ON KEYSPACE pk TO other", ["REVOKE MODIFY ON KEYSPACE pk FROM other"]),
    ("REVOKE SELECT ON pk.t FROM other", []),
    ("LIST ROLES OF target", []),
    ("LIST ROLES OF {me}", []),
    ("LIST ALL PERMISSIONS OF target", []),
    ("LIST ALL PERMISSIONS OF {me}", []),
]

DATA = ["CREATE", "ALTER", "DROP", "SELECT", "MODIFY", "AUTHORIZE"]
GRANTS = {
    "ALL KEYSPACES": DATA,
    "KEYSPACE pk": DATA,
    "ALL TABLES IN KEYSPACE pk": DATA,
    "TABLE pk.t": DATA[1:],
    "KEYSPACE po": ["SELECT", "MODIFY"],
    "KEYSPACE system_auth": ["SELECT", "ALTER"],
    "ALL ROLES": ["CREATE", "ALTER", "DROP", "AUTHORIZE", "DESCRIBE"],
    "ROLE other": ["ALTER", "DROP", "AUTHORIZE"],
    "ALL FUNCTIONS": ["CREATE", "EXECUTE"],
    "ALL FUNCTIONS IN KEYSPACE pk": ["CREATE", "ALTER", "DROP", "AUTHORIZE", "EXECUTE"],
    "FUNCTION pk.f (int)": ["ALTER", "DROP", "AUTHORIZE", "EXECUTE"],
    "FUNCTION pk.ag (int)": ["ALTER", "DROP", "EXECUTE"],
}

# What differs on purpose, and why.
DECIDED = {
    # A superuser may break Cassandra's own keyspaces. Here the rows of `system` and `system_schema` are made by the server.
    "INSERT INTO system.local (key) VALUES ('x')",
}


class Server:
    def __init__(self, address):
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.superuser = self.login("cassandra", "cassandra")

    def login(self, user, password):
        profile = ExecutionProfile(request_timeout=60)
        cluster = Cluster(
            [self.host],
            port=self.port,
            auth_provider=PlainTextAuthProvider(user, password),
            protocol_version=5,
            connect_timeout=30,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
        )
        return cluster.connect()


def answer(session, text):
    """What a statement came to: rows, or the code and the text of its error."""
    try:
        return "ok", sorted(str(tuple(row)) for row in session.execute(SimpleStatement(text)))
    except Exception as error:
        # The driver takes some errors of a server for its own.
        found = re.search(r"code=(\w+) .*?message=\"(.*)\"", str(error), re.S)
        return "error", found.groups() if found else (type(error).__name__, str(error))


def ways():
    """Each way of having a permission: what it is called, and the statements that give it to a role."""
    yield "none", []
    yield "superuser", ["ALTER ROLE {me} WITH SUPERUSER = true"]
    yield "member of a superuser", ["CREATE ROLE {me}_g WITH SUPERUSER = true", "GRANT {me}_g TO {me}"]
    for resource, permissions in GRANTS.items():
        for permission in permissions:
            grant = f"GRANT {permission} ON {resource} TO "
            yield f"{permission} ON {resource}", [grant + "{me}"]
            yield f"inherited {permission} ON {resource}", ["CREATE ROLE {me}_g", grant + "{me}_g", "GRANT {me}_g TO {me}"]


def main():
    servers = [Server(address) for address in sys.argv[1:3]]

    def everywhere(text):
        for server in servers:
            server.superuser.execute(text)

    for text in SCHEMA:
        everywhere(text)
    cells = wrong = refused = 0
    for number, (way, gives) in enumerate(ways()):
        me = f"x{number}"
        everywhere(f"CREATE ROLE {me} WITH PASSWORD = 'pw' AND LOGIN = true")
        for text in gives:
            everywhere(text.format(me=me))
        sessions = [server.login(me, "pw") for server in servers]
        for text, puts_back in STATEMENTS:
            text = text.replace("{me}", me)
            answers = [answer(session, text) for session in sessions]
            cells += 1
            refused += answers[0][0] == "error"
            if answers[0] != answers[1] and not (answers[0][0] == "ok" and text in DECIDED):
                wrong += 1
                print(f"DIFFERENT with {way}: {text}\n  Cassandra {answers[0]}\n  Helenus   {answers[1]}")
            for server, came in zip(servers, answers):
                if came[0] == "ok":
                    for back in puts_back:
                        server.superuser.execute(back)
        for session in sessions:
            session.cluster.shutdown()
        for text in gives:
            if "CREATE ROLE" in text:
                everywhere(f"DROP ROLE {me}_g")
        everywhere(f"DROP ROLE {me}")
    print(f"{cells} cells, {refused} refused by Cassandra, {wrong} different")
    return 1 if wrong or cells < 2000 else 0


sys.exit(main())
