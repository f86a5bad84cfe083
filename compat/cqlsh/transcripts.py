"""Types transcripts into cqlsh and compares what it prints with what it printed on Cassandra.

    transcripts.py HOST:PORT [--record] [NAME…]

`transcripts/NAME.cql` is what is typed, `transcripts/NAME.txt` what Cassandra's cqlsh printed. What differs from run to
run is replaced on both sides before comparing: host, port, versions, table ids, times. `login.cql` runs only with
HELENUS_LOGIN=HOST:PORT, a server with the user cassandra and the password cassandra. `describe-cqlsh.json` of the
golden facts is replayed too, elements of later issues left out.
"""

import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CQLSH = pathlib.Path(sys.executable).with_name("cqlsh")
# Elements that later issues bring; their statements are cut out of what DESCRIBE prints.
LATER = re.compile(r"^CREATE (CUSTOM )?(INDEX|FUNCTION|AGGREGATE|MATERIALIZED VIEW).*?;\n+", re.S | re.M)


def cqlsh(address, text, *arguments, folder):
    host, port = address.rsplit(":", 1)
    done = subprocess.run(
        [CQLSH, host, port, "--no-color", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        # No history or settings of the person who runs this.
        env={**os.environ, "HOME": folder, "COLUMNS": "200", "TERM": "dumb", "PYTHONWARNINGS": "ignore"},
    )
    return done.stdout + "".join(f"! {line}\n" for line in done.stderr.splitlines() if line.strip())


def normal(text, address, folder):
    host, port = address.rsplit(":", 1)
    text = text.replace(str(folder), "<folder>")
    text = re.sub(rf"{re.escape(host)}:\d+", "<address>", text)
    text = re.sub(r"\b127\.0\.0\.\d+\b", "<host>", text)
    text = text.replace(f":{port}", ":<port>")
    text = re.sub(r"^WARNING: cqlsh was built against .*\n+", "", text, flags=re.M)
    text = re.sub(r"Connected to .* at", "Connected to <cluster> at", text)
    text = re.sub(r"\| Cassandra [\d.]+[-\w]* \|", "| Cassandra <version> |", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-7][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?= *\()", "<session>", text)
    text = re.sub(r"ID = [0-9a-f-]{36}", "ID = <id>", text)
    text = re.sub(r"\d+ rows imported from (\d+) files in .*", r"rows imported from \1 files", text)
    text = re.sub(r"(\d+ rows (ex|im)ported (to|from) \d+ files?) in .*", r"\1", text)
    text = re.sub(r"^Processed: .*\r?\n?", "", text, flags=re.M)
    text = re.sub(r"Processed: .*?(?=Processed|$)", "", text, flags=re.M)
    text = re.sub(r"Starting copy of .*", lambda m: m.group(0), text)
    text = re.sub(r"Using \d+ child processes", "Using <n> child processes", text)
    text = re.sub(r"\(in [\d.]+ seconds\)|in [\d.]+ seconds", "<time>", text)
    lines = [line.rstrip() for line in text.splitlines()]
    # Blank lines come and go with how progress is printed.
    return "\n".join(line for line in lines if line) + "\n"


def tracing(text):
    """Of a trace only what does not depend on how a server works: that there is one, its heading, its first column."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("Tracing session:"):
            inside = True
            kept.append("Tracing session: <session>")
        elif inside and re.match(r" *activity +\| timestamp", line):
            kept.append("activity | timestamp | source | source_elapsed | client")
        elif inside and re.match(r" *(Execute CQL3 query|Request complete) +[|]", line):
            kept.append(line.split("|")[0].strip())
            inside = "Request complete" not in line
        elif not inside:
            kept.append(line)
    return "\n".join(kept) + "\n"


def transcript(path, address, arguments=()):
    with tempfile.TemporaryDirectory() as folder:
        for name in path.parent.glob(f"{path.stem}.*.csv"):
            pathlib.Path(folder, name.name).write_bytes(name.read_bytes())
        for name in path.parent.glob(f"{path.stem}.*.source"):
            pathlib.Path(folder, name.name).write_bytes(name.read_bytes())
        printed = cqlsh(address, path.read_text(), *arguments, folder=folder)
        printed += "".join(
            f"--- {out.name}\n{out.read_text()}" for out in sorted(pathlib.Path(folder).glob("out*")) if out.is_file()
        )
        return tracing(normal(printed, address, folder))


def describe(address):
    """The golden DESCRIBE statements through cqlsh: (statement, expected, printed)."""
    golden = HERE.parent / "golden"
    setup = json.loads((golden / "setup.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        cqlsh(address, "DROP KEYSPACE IF EXISTS golden;\n" + ";\n".join(setup) + ";\n", folder=folder)
        for entry in json.loads((golden / "describe-cqlsh.json").read_text()):
            statement = entry["statement"]
            host = address.rsplit(":", 1)
            done = subprocess.run(
                [CQLSH, *host, "--no-color", "-k", "golden", "-e", statement],
                capture_output=True,
                text=True,
                timeout=120,
                env={**os.environ, "HOME": folder},
            )
            told = {"status": done.returncode, "output": done.stdout, "errors": [e for e in done.stderr.splitlines() if e]}
            expected = {"errors": [], **{k: v for k, v in entry.items() if k != "statement"}}
            sides = []
            for side in (expected, told):
                # Node names and ports of the recording, its cluster, its versions and its tokens' owner.
                output = normal(LATER.sub("", side["output"]), "127.0.0.1:19042", folder)
                output = normal(output, address, folder)
                output = re.sub(r"Cluster: .*", "Cluster: <cluster>", output)
                output = re.sub(r"\n+", "\n", output)
                if statement == "DESCRIBE CLUSTER":
                    output = output.split("Range ownership")[0]
                sides.append({**side, "output": output, "errors": [normal(e, address, folder) for e in side["errors"]]})
            yield statement, sides[0], sides[1]
        cqlsh(address, "DROP KEYSPACE IF EXISTS golden;\n", folder=folder)


# Statements of describe-cqlsh.json whose answer is about elements of later issues, or about who we are.
DESCRIBE_LATER = re.compile(
    r"INDEX|MATERIALIZED VIEW|FUNCTION|AGGREGATE|by_v|indexed_v|TABLE by_v|DESCRIBE KEYSPACES|DESCRIBE SCHEMA|SHOW VERSION"
)


def main():
    arguments = sys.argv[1:]
    record = "--record" in arguments
    address, *only = [a for a in arguments if a != "--record"]
    passed, failed, skipped = 0, 0, []
    for path in sorted((HERE / "transcripts").glob("*.cql")):
        name = path.stem
        if only and name not in only:
            continue
        target, more = address, []
        if name == "login":
            target = os.environ.get("HELENUS_LOGIN")
            more = ["-u", "cassandra", "-p", "cassandra"]
            if not target:
                skipped.append(name)
                continue
        printed = transcript(path, target, more)
        expected_path = path.with_suffix(".txt")
        if record:
            expected_path.write_text(printed)
            print(f"recorded {name}: {len(printed.splitlines())} lines")
            continue
        expected = expected_path.read_text()
        if printed == expected:
            passed += 1
            print(f"PASS {name}")
        else:
            failed += 1
            print(f"FAIL {name}")
            lines = difflib.unified_diff(expected.splitlines(), printed.splitlines(), "Cassandra", "here", lineterm="", n=1)
            print("\n".join(f"    {line}" for line in list(lines)[:60]))
    if not record and (not only or "describe" in only):
        for statement, expected, told in describe(address):
            if DESCRIBE_LATER.search(statement):
                continue
            if expected == told:
                passed += 1
                continue
            failed += 1
            print(f"FAIL {statement}")
            lines = difflib.unified_diff(
                [*expected["output"].splitlines(), *expected["errors"], str(expected["status"])],
                [*told["output"].splitlines(), *told["errors"], str(told["status"])],
                "Cassandra",
                "here",
                lineterm="",
                n=0,
            )
            print("\n".join(f"    {line}" for line in list(lines)[:20]))
    told = f", {len(skipped)} skipped ({', '.join(skipped)}: HELENUS_LOGIN is not set)" if skipped else ""
    print(f"cqlsh: {passed} passed, {failed} failed{told}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
