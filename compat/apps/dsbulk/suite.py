"""suite.py HOST:PORT FOLDER: loads and unloads with the DSBulk whose jars are in FOLDER; a line PASS or FAIL for each check."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import traceback

from cassandra.cluster import Cluster

ROWS = 2000
KEYSPACE = "apps_dsbulk"
COLUMNS = {
    "pk": "int", "ck": "int", "a_text": "text", "a_decimal": "decimal", "a_time": "timestamp", "a_uuid": "uuid", "a_blob": "blob",
    "a_list": "list<text>", "a_set": "set<int>", "a_map": "map<text, int>", "a_user": "frozen<address>", "a_tuple": "tuple<int, text>",
    "an_inet": "inet", "a_duration": "duration", "a_date": "date", "a_day": "time", "a_varint": "varint", "a_double": "double",
    "a_switch": "boolean", "an_empty": "blob",
}


def row(number):
    """One row as DSBulk writes it to CSV."""
    return {
        "pk": str(number // 10), "ck": str(number % 10), "a_text": f"text, \"{number}\" é", "a_decimal": f"{number}.25",
        "a_time": f"2024-02-29T12:00:{number % 60:02}Z", "a_uuid": f"00000000-0000-4000-8000-{number:012x}", "a_blob": "AAEC",
        "a_list": json.dumps([f"a{number}", "b"], separators=(",", ":")), "a_set": f"[{number},{number + 1}]", "a_map": f'{{"k":{number},"m":1}}',
        "a_user": f'{{"street":"s{number}","house":{number}}}', "a_tuple": f'[{number},"t"]', "an_inet": "10.0.0.1",
        "a_duration": "1mo2d3h", "a_date": "2024-02-29", "a_day": "12:34:56.789", "a_varint": str(10**20 + number),
        "a_double": f"{number}.5", "a_switch": str(number % 2), "an_empty": "",
    }


class Suite:
    def __init__(self, address, jars, work):
        self.host, port = address.rsplit(":", 1)
        self.port, self.jars, self.work = int(port), jars, work
        self.session = Cluster([self.host], port=self.port, protocol_version=4).connect()
        self.printed = work / "printed"
        source = pathlib.Path(__file__).parent / "Bulk.java"
        self.machine = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(source)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.printed.open("w"), text=True,
        )
        self.failed = 0
        self.runs = 0
        for statement in (
            f"DROP KEYSPACE IF EXISTS {KEYSPACE}",
            f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
            f"CREATE TYPE {KEYSPACE}.address (street text, house int)",
        ):
            self.session.execute(statement, timeout=60)
        self.session.set_keyspace(KEYSPACE)

    def table(self, name, columns="pk int, ck int, v int, PRIMARY KEY (pk, ck)"):
        self.session.execute(f"CREATE TABLE {name} ({columns})", timeout=60)

    def bulk(self, verb, *options, ok=(0,)):
        """Runs DSBulk; the folder of its log, and what it printed."""
        self.runs += 1
        logs = self.work / f"logs{self.runs}"
        arguments = [
            verb, "-h", self.host, "-port", str(self.port), "-k", KEYSPACE, "-logDir", str(logs), "--log.verbosity", "normal",
            "--driver.basic.request.timeout", "20 seconds", *options,
        ]
        printed_before = self.printed.stat().st_size
        self.machine.stdin.write("\t".join(arguments) + "\n")
        self.machine.stdin.flush()
        ended = int(self.machine.stdout.readline())
        text = self.printed.read_text()[printed_before:]
        if ended not in ok:
            log = "".join(path.read_text() for path in logs.glob("*/operation.log"))
            errors = "".join(path.read_text()[:1500] for path in logs.glob("*/*-errors.log"))
            raise AssertionError(f"dsbulk {verb} ended with {ended}: {text[-1000:]}{log[-2500:]}{errors}")
        return logs, text

    def write(self, name, rows):
        path = self.work / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), doublequote=False, escapechar="\\")
            writer.writeheader()
            writer.writerows(rows)
        return str(path)

    def unload(self, *options):
        """What an unload prints, as sorted rows of CSV."""
        folder = self.work / f"out{self.runs}"
        self.bulk("unload", "-url", str(folder), *options)
        rows = []
        for path in sorted(folder.glob("*.csv")):
            with path.open(newline="") as file:
                rows += list(csv.DictReader(file, doublequote=False, escapechar="\\"))
        return rows

    def all_types_csv(self):
        rows = [row(number) for number in range(ROWS)]
        self.table("types", ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()) + ", PRIMARY KEY (pk, ck)")
        self.bulk("load", "-t", "types", "-url", self.write("types", rows), "--codec.binary", "BASE64")
        found = self.unload("-t", "types", "--codec.binary", "BASE64")
        assert len(found) == ROWS, f"{len(found)} rows"
        key = lambda each: (int(each["pk"]), int(each["ck"]))
        for wanted, got in zip(sorted(rows, key=key), sorted(found, key=key)):
            assert wanted == got, f"{wanted} came back as {got}"

    def all_types_json(self):
        """Needs the table of `all_types_csv`."""
        before = {tuple(each) for each in self.session.execute("SELECT pk, ck, a_text, a_decimal, an_inet FROM types")}
        folder = self.work / "json"
        self.bulk("unload", "-t", "types", "-c", "json", "-url", str(folder))
        self.session.execute("TRUNCATE types", timeout=60)
        self.bulk("load", "-t", "types", "-c", "json", "-url", str(folder))
        after = {tuple(each) for each in self.session.execute("SELECT pk, ck, a_text, a_decimal, an_inet FROM types")}
        assert before == after and len(after) == ROWS, f"{len(before)} rows before, {len(after)} after"

    def splits(self):
        self.table("split")
        rows = [{"pk": number, "ck": 0, "v": number} for number in range(ROWS)]
        self.bulk("load", "-t", "split", "-url", self.write("split", rows))
        for splits in ("1", "16"):
            found = self.unload("-t", "split", "--schema.splits", splits, "--driver.basic.request.page-size", "37")
            assert sorted(int(each["pk"]) for each in found) == list(range(ROWS)), f"{len(found)} rows in {splits} splits"

    def token_range_query(self):
        """Needs the table of `splits`."""
        query = "SELECT pk, v FROM split WHERE token(pk) > :start AND token(pk) <= :end"
        found = self.unload("-query", query)
        assert sorted(int(each["v"]) for each in found) == list(range(ROWS)), f"{len(found)} rows"

    def times(self):
        self.table("times")
        rows = [{"pk": number, "ck": 1, "v": number, "ttl": 5000, "at": f"2023-11-14T22:13:20.{number:06}Z"} for number in range(50)]
        query = "INSERT INTO times (pk, ck, v) VALUES (:pk, :ck, :v) USING TTL :ttl AND TIMESTAMP :at"
        self.bulk("load", "-query", query, "-url", self.write("times", rows))
        for pk, written, left in self.session.execute("SELECT pk, writetime(v), ttl(v) FROM times"):
            assert written == 1_700_000_000_000_000 + pk and 4000 < left <= 5000, (pk, written, left)

    def times_kept(self):
        """Needs the table of `times`."""
        before = sorted(tuple(each) for each in self.session.execute("SELECT pk, v, writetime(v) FROM times"))
        folder = self.work / "kept"
        kept = ("--schema.preserveTimestamp", "true", "--schema.preserveTtl", "true")
        self.bulk("unload", "-t", "times", "-url", str(folder), *kept)
        self.table("times_kept")
        self.bulk("load", "-t", "times_kept", "-url", str(folder), *kept)
        after = sorted(tuple(each) for each in self.session.execute("SELECT pk, v, writetime(v) FROM times_kept"))
        assert before == after, (before[:3], after[:3])

    def batches(self):
        for mode in ("PARTITION_KEY", "REPLICA_SET", "DISABLED"):
            name = f"batches_{mode.lower()}"
            self.table(name)
            rows = [{"pk": number // 100, "ck": number % 100, "v": number} for number in range(1000)]
            self.bulk("load", "-t", name, "-url", self.write(name, rows), "--batch.mode", mode)
            found = self.session.execute(f"SELECT count(*) FROM {name}").one()[0]
            assert found == 1000, f"{mode}: {found} rows"

    def counters(self):
        self.table("counters", "pk int PRIMARY KEY, hits counter")
        rows = [{"pk": number % 10, "hits": 3} for number in range(100)]
        path = self.write("counters", rows)
        self.bulk("load", "-query", "UPDATE counters SET hits = hits + :hits WHERE pk = :pk", "-url", path)
        found = {each.pk: each.hits for each in self.session.execute("SELECT pk, hits FROM counters")}
        assert found == {number: 30 for number in range(10)}, found

    def statics_and_unset(self):
        self.table("statics", "pk int, ck int, s text static, v text, PRIMARY KEY (pk, ck)")
        rows = [{"pk": 1, "ck": 1, "s": "static", "v": "a"}, {"pk": 1, "ck": 2, "s": "", "v": "b"}]
        self.bulk("load", "-t", "statics", "-url", self.write("statics", rows), "--engine.maxConcurrentQueries", "1")
        found = [tuple(each) for each in self.session.execute("SELECT pk, ck, s, v FROM statics")]
        assert found == [(1, 1, "static", "a"), (1, 2, "static", "b")], found

    def deletions(self):
        """Needs the table of `splits`."""
        path = self.write("deletions", [{"pk": number, "ck": 0} for number in range(0, ROWS, 2)])
        self.bulk("load", "-query", "DELETE FROM split WHERE pk = :pk AND ck = :ck", "-url", path)
        found = self.session.execute("SELECT count(*) FROM split").one()[0]
        assert found == ROWS // 2, found

    def functions_in_mappings(self):
        self.table("mapped", "pk int PRIMARY KEY, at timeuuid, v text")
        path = self.write("mapped", [{"x": number, "y": f"v{number}"} for number in range(20)])
        self.bulk("load", "-t", "mapped", "-url", path, "-m", "x = pk, y = v, now() = at")
        found = [each for each in self.session.execute("SELECT pk, at, v FROM mapped")]
        assert len(found) == 20 and all(each.at for each in found), found
        found = self.unload("-t", "mapped", "-m", "pk = pk, when = to_timestamp(at), t = writetime(v)")
        assert len(found) == 20, found

    def lightweight_transactions(self):
        self.table("conditional", "pk int PRIMARY KEY, v int")
        self.session.execute("INSERT INTO conditional (pk, v) VALUES (1, 100)")
        path = self.write("conditional", [{"pk": number, "v": number} for number in range(10)])
        # A condition that does not hold is an error of DSBulk's, and a row of its file of bad rows.
        logs, _ = self.bulk("load", "-query", "INSERT INTO conditional (pk, v) VALUES (:pk, :v) IF NOT EXISTS", "-url", path, ok=(0, 1))
        found = {each.pk: each.v for each in self.session.execute("SELECT pk, v FROM conditional")}
        assert found == {number: 100 if number == 1 else number for number in range(10)}, found
        assert list(logs.glob("*/paxos.bad")), "no file of the row that was refused"

    def bad_rows(self):
        self.table("bad", "pk int PRIMARY KEY, v int")
        path = self.write("bad", [{"pk": number, "v": "no number" if number == 3 else number} for number in range(10)])
        logs, _ = self.bulk("load", "-t", "bad", "-url", path, "-maxErrors", "5", ok=(1,))
        found = self.session.execute("SELECT count(*) FROM bad").one()[0]
        assert found == 9 and list(logs.glob("*/mapping.bad")), found

    def missing_table(self):
        path = self.write("missing", [{"pk": 1}])
        _, text = self.bulk("load", "-t", "missing", "-url", path, ok=(2, 3, 4))
        assert "missing" in text, text

    def compression_and_version_5(self):
        """Needs the table of `splits`."""
        for name, value in (("compression", "lz4"), ("version", "V5"), ("version", "V3")):
            found = self.unload("-t", "split", f"--driver.advanced.protocol.{name}", value)
            assert len(found) == ROWS // 2, f"{name} {value}: {len(found)} rows"

    def dry_run(self):
        self.table("dry", "pk int PRIMARY KEY, v int")
        self.bulk("load", "-t", "dry", "-url", self.write("dry", [{"pk": 1, "v": 1}]), "-dryRun", "true")
        assert self.session.execute("SELECT count(*) FROM dry").one()[0] == 0

    def run(self):
        for check in (
            self.all_types_csv, self.all_types_json, self.splits, self.token_range_query, self.times, self.times_kept, self.batches, self.counters,
            self.statics_and_unset, self.deletions, self.functions_in_mappings, self.lightweight_transactions, self.bad_rows, self.missing_table,
            self.compression_and_version_5, self.dry_run,
        ):
            try:
                check()
                print(f"PASS {check.__name__}", flush=True)
            except Exception:
                self.failed += 1
                traceback.print_exc()
                print(f"FAIL {check.__name__}", flush=True)
        self.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)
        self.session.cluster.shutdown()
        self.machine.stdin.close()
        self.machine.wait(timeout=60)
        return self.failed


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(min(Suite(sys.argv[1], sys.argv[2], pathlib.Path(folder)).run(), 1))
