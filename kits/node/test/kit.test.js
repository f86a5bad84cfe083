// The kit's own tests; they are also what its users copy from.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { extractProgram, findProgram, start, useServer } from "helenus-test";

const server = useServer();

// What a user writes: it moves the clock, meets a fault and a throttle.
test("a cart expires", async () => {
  const cql = await server.session("shop");
  await cql.execute("CREATE TABLE IF NOT EXISTS cart (id int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400");
  const put = (id) => cql.execute("INSERT INTO cart (id) VALUES (?) USING TTL 60", [id], { prepare: true });
  await server.faults({ action: "throttle", table: "cart", statement: "write", count: 1 });
  await assert.rejects(put(1));
  await put(1);
  const [{ matched, hit }] = (await server.faultPlan()).fault;
  assert.deepEqual({ matched, hit }, { matched: 2, hit: 1 });
  assert.deepEqual((await server.faults()).fault, []);
  await assert.rejects(async () => {
    for (let id = 0; id < 5000; id++) await put(id);
  });
  assert.ok((await server.throttles(cql)).length);
  await server.advance(61);
  assert.equal((await cql.execute("SELECT * FROM cart")).rowLength, 0);
});

test("charges are counted", async () => {
  const cql = await server.session("charges");
  await cql.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)");
  const charge = await server.charge(cql, "charges", () => cql.execute("INSERT INTO t (k) VALUES (1)"));
  assert.ok(charge > 1 && charge < 100, `the charge is ${charge}`);
  const insert = () => cql.execute("INSERT INTO t (k) VALUES (2)");
  await server.assertChargeMax(cql, "charges", 100, insert);
  await assert.rejects(server.assertChargeMax(cql, "charges", 0.1, insert), assert.AssertionError);
  await assert.rejects(server.charge(cql, "chargse"), /no table in a keyspace chargse.*charges\.t/);
});

test("a prepared statement outlives a reset that keeps the schema", async () => {
  const cql = await server.session("kept");
  await cql.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)");
  for (const id of [1, 2]) {
    await cql.execute("INSERT INTO t (k) VALUES (?)", [id], { prepare: true });
    assert.equal((await cql.execute("SELECT k FROM t")).rowLength, 1);
    await server.reset({ keep: "schema" });
  }
});

test("the server ends with a killed runner", async () => {
  const script = 'const { start } = await import("helenus-test"); console.log((await start()).pid); setTimeout(() => {}, 60_000);';
  const runner = spawn(process.execPath, ["--input-type=module", "-e", script], { cwd: import.meta.dirname });
  const line = await new Promise((resolve) => createInterface({ input: runner.stdout }).once("line", resolve));
  runner.kill("SIGKILL");
  for (let tries = 0; tries < 500 && !gone(Number(line)); tries++) await setTimeout(10);
  assert.ok(gone(Number(line)), `the server ${line} is still there`);
});

test("what the server refuses names its cause", async () => {
  await assert.rejects(start({ program: "/nowhere/helenus" }), /is not a program/);
  await assert.rejects(start({ args: ["--durability=never"] }), /durability/);
  await assert.rejects(server.clock({ set_ms: 0 }), /409 .*never goes back/);
});

test("another version of the record is refused", async () => {
  const program = script(`echo '{"api":2}'; cat >/dev/null`);
  await assert.rejects(start({ program }), /has version 2; this package reads 1/);
});

test("a carried program is extracted once", async () => {
  const cache = mkdtempSync(join(tmpdir(), "helenus-"));
  const bytes = Buffer.from("#!/bin/sh\necho carried\n");
  const path = extractProgram(bytes, cache);
  assert.equal(extractProgram(bytes, cache), path);
  assert.equal(execFileSync(path).toString(), "carried\n");
  assert.deepEqual(readdirSync(dirname(path)), ["helenus"]);
});

test("the argument goes before HELENUS_BIN", () => {
  const program = script("exit 1");
  assert.equal(findProgram(program), program);
  assert.equal(findProgram(), process.env.HELENUS_BIN);
});

test("the profile cosmos needs an account", async () => {
  const cosmos = await start({ cosmos: true });
  const cql = await cosmos.session("shop");
  await cql.execute("CREATE TABLE orders (id int PRIMARY KEY)");
  assert.ok(cosmos.account && cosmos.certificatePem);
  await cosmos.stop();
});

test("a failed test shows the log", () => {
  const file = join(import.meta.dirname, "failing.js");
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--test", file], { env, encoding: "utf8" });
  assert.notEqual(status, 0);
  assert.match(stdout + stderr, /the last lines of the Helenus log:\n.*\S/);
});

function script(text) {
  const path = join(mkdtempSync(join(tmpdir(), "helenus-")), "helenus");
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o700);
  return path;
}

/** Whether a process has ended. Where no process reaps it, it stays as a zombie. */
function gone(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).startsWith("Z");
  } catch {
    return true;
  }
}
