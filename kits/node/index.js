/**
 * Starts Helenus, a server for the Cassandra protocol, and controls it: its clock, its data, its faults.
 *
 *     const server = await start();
 *     const cql = await server.session("shop");
 *     await server.advance(61);
 *     await server.stop();
 *
 * The server is a child process that keeps its data in memory. It ends with `stop()`, and when this process ends, however it ends: the child
 * reads its standard input, which this process holds open.
 */

import { AssertionError } from "node:assert";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { findProgram } from "./program.js";

export { extractProgram, findProgram } from "./program.js";
export { useServer } from "./test-server.js";

/** The version of the server's record that this package reads. */
export const API = 1;

/** Lines of the server's log that are kept for `Server.log`. */
const LOG_LINES_MAX = 50;

/** Milliseconds that a request to the admin port may take. */
const ADMIN_MS_MAX = 30_000;

/**
 * Starts a server on free ports and waits until it answers. `cosmos` serves as Azure Cosmos DB does, with TLS and an account; `nodes: 4` makes
 * four virtual nodes; `args` are passed on: `["--scale-limits=1/1000"]`.
 */
export async function start({ program, cosmos = false, nodes, args = [] } = {}) {
  const command = ["serve", "--data", "memory:", "--ready-json", "-", "--exit-with-stdin"];
  command.push("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0");
  if (cosmos) command.push("--profile", "cosmos", "--tls-listen", "127.0.0.1:0");
  if (nodes) command.push("--nodes", String(nodes));
  const child = spawn(findProgram(program), [...command, ...args], { stdio: "pipe" });
  const server = new Server(child);
  const line = await server.firstLine();
  if (line === undefined) {
    await server.stop();
    throw new Error(`the server does not start:\n${server.log}`);
  }
  const record = JSON.parse(line);
  if (record.api !== API) {
    await server.stop();
    throw new Error(`the server's record has version ${record.api}; this package reads ${API}`);
  }
  return server.take(record);
}

/** A running server. Properties of its record: `cql`, `tls`, `admin`, `account`, `key`, `certificatePem`, `pid`. */
export class Server {
  #child;
  #ended;
  #log = [];
  #token;
  #clients = [];

  constructor(child) {
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once("close", resolve);
      child.once("error", (error) => {
        this.#log.push(String(error));
        resolve();
      });
    });
    // A write into the pipe of a server that has ended is no error of the test.
    child.stdin.on("error", () => {});
    createInterface({ input: child.stderr }).on("line", (line) => {
      this.#log.push(line);
      if (this.#log.length > LOG_LINES_MAX) this.#log.shift();
    });
  }

  /** The record's line; `undefined`: the server ended without one. */
  firstLine() {
    const lines = createInterface({ input: this.#child.stdout });
    return Promise.race([new Promise((resolve) => lines.once("line", resolve)), this.#ended.then(() => undefined)]);
  }

  /** Takes over the record. The server alone keeps no test process running. */
  take({ token, certificate_pem: certificatePem, ...record }) {
    this.#token = token;
    Object.assign(this, record, { certificatePem });
    this.#child.unref();
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe.unref();
    return this;
  }

  /** The last lines of the server's log. */
  get log() {
    return this.#log.join("\n");
  }

  /** The address of CQL without TLS. */
  get host() {
    return this.cql.slice(0, this.cql.lastIndexOf(":"));
  }

  /** The port of CQL without TLS. */
  get port() {
    return Number(this.cql.slice(this.cql.lastIndexOf(":") + 1));
  }

  /** Closes the sessions of `session()` and ends the server. */
  async stop() {
    await Promise.all(this.#clients.splice(0).map((client) => client.shutdown()));
    this.#child.ref();
    this.#child.stdin.end();
    await this.#ended;
  }

  /**
   * A client of the package cassandra-driver, in a keyspace that is made where it is missing. It retries nothing, so that a test sees each
   * refusal. `options` are those of `cassandra.Client`.
   */
  async session(keyspace, options = {}) {
    const { default: cassandra } = await import("cassandra-driver");
    const { policies, auth } = cassandra;
    const client = new cassandra.Client({
      contactPoints: [this.cql],
      authProvider: this.account ? new auth.PlainTextAuthProvider(this.account, this.key) : undefined,
      policies: { loadBalancing: new policies.loadBalancing.RoundRobinPolicy(), retry: new policies.retry.FallthroughRetryPolicy() },
      ...options,
    });
    this.#clients.push(client);
    await client.connect();
    if (keyspace) {
      const replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
      await client.execute(`CREATE KEYSPACE IF NOT EXISTS "${keyspace}" WITH replication = ${replication}`);
      await client.execute(`USE "${keyspace}"`);
      client.keyspace = keyspace;
    }
    return client;
  }

  /** Moves the server's clock ahead. Returns when everything that became due is done. Seconds may be a fraction. */
  advance(seconds) {
    return this.#ask("POST", "/api/clock", { advance_ms: Math.round(seconds * 1000) });
  }

  /** Changes the clock: `set_ms`, `advance_ms`, `mode` ("manual" or "running"). Without a change, shows it. */
  clock(change) {
    return change ? this.#ask("POST", "/api/clock", change) : this.#ask("GET", "/api/clock");
  }

  /** Empties the server. With `{ keep: "schema" }` tables stay, and so do prepared statements. */
  reset(options = {}) {
    return this.#ask("POST", "/api/reset", options);
  }

  /** Replaces the fault plan: an object for each fault. Without faults, ends all. Returns the new plan; see `faultPlan`. */
  faults(...faults) {
    if (!faults.length) return this.#ask("DELETE", "/api/faults");
    return this.#ask("POST", "/api/faults", { seed: 1, fault: faults });
  }

  /** The fault plan in force: `fault` lists its faults, each with its keys, `holds`, `matched` and `hit`. */
  faultPlan() {
    return this.#ask("GET", "/api/faults");
  }

  /** The statements that were refused for want of request units, as rows of `system_cosmos.throttles`. */
  async throttles(client) {
    return (await client.execute("SELECT * FROM system_cosmos.throttles")).rows;
  }

  /**
   * The request units that the tables of a keyspace were charged; with `work`, those that it adds. Refuses a keyspace without tables: its
   * charge would be 0 for ever.
   */
  async charge(client, keyspace, work) {
    const before = work ? await this.charge(client, keyspace) : 0;
    await work?.();
    const { rows } = await client.execute("SELECT keyspace_name, table_name, request_units FROM system_cosmos.tables");
    const own = rows.filter((row) => row.keyspace_name === keyspace);
    if (!own.length) {
      const known = rows.map((row) => `${row.keyspace_name}.${row.table_name}`).sort().join(", ") || "none";
      throw new Error(`there is no table in a keyspace ${keyspace}, so nothing is charged to it; the tables are: ${known}`);
    }
    return own.reduce((sum, row) => sum + row.request_units, 0) - before;
  }

  /** Fails when the work charges the tables of a keyspace more request units than `max`. Returns the charge. */
  async assertChargeMax(client, keyspace, max, work) {
    const charge = await this.charge(client, keyspace, work);
    if (charge > max) throw new AssertionError({ message: `the charge is ${charge.toFixed(2)} request units, more than ${max}` });
    return charge;
  }

  async #ask(method, path, body) {
    const answer = await fetch(`http://${this.admin}${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(ADMIN_MS_MAX),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.trim()}`);
    return JSON.parse(text);
  }
}
