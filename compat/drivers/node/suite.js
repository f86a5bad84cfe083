// What an application does through the Node driver. `suite.js HOST:PORT`; a line for each test and `node: N passed,
// N failed` at the end.
'use strict';
const assert = require('assert');
const cassandra = require('cassandra-driver');
const { types } = cassandra;

const [host, port] = process.argv[2].split(/:(?=\d+$)/);
const KS = 'compat_node';
const tests = [];
const test = (name, f) => tests.push([name, f]);
const connect = (more = {}) =>
  new cassandra.Client({
    contactPoints: [`${host}:${port}`],
    localDataCenter: 'datacenter1',
    protocolOptions: { port: Number(port) },
    ...more,
  });
const show = (v) =>
  v === null || v === undefined ? 'null'
    : Buffer.isBuffer(v) ? v.toString('hex')
      : Array.isArray(v) ? `[${v.map(show)}]`
        : v instanceof Date ? v.toISOString()
          : v instanceof Float32Array ? `[${Array.from(v)}]`
            : typeof v === 'object' && v.constructor === Object ? JSON.stringify(v) : v.toString();

const { Long, Integer, BigDecimal, InetAddress, LocalDate, LocalTime, Duration, Tuple, Uuid, TimeUuid, Vector } = types;
const values = {
  ascii: ['', 'abc'],
  bigint: [Long.fromString('-9223372036854775808'), Long.fromNumber(5)],
  blob: [Buffer.alloc(0), Buffer.from('00ff', 'hex')],
  boolean: [true, false],
  date: [new LocalDate(2020, 2, 29), new LocalDate(1969, 12, 31)],
  decimal: [BigDecimal.fromString('-1.50'), BigDecimal.fromString('0')],
  double: [0, -1.5e300, Infinity],
  duration: [new Duration(1, 2, Long.fromNumber(3))],
  float: [0.5, -1],
  inet: [InetAddress.fromString('127.0.0.1'), InetAddress.fromString('::1')],
  int: [0, -2147483648, 2147483647],
  smallint: [-32768, 32767],
  text: ['', 'é日本😀', 'x'.repeat(100000)],
  time: [LocalTime.fromString('23:59:59.999999999')],
  timestamp: [new Date('2020-02-29T01:02:03.004Z')],
  timeuuid: [TimeUuid.fromString('50554d6e-29bb-11e5-b345-feff819cdc9f')],
  tinyint: [-128, 127],
  uuid: [Uuid.fromString('123e4567-e89b-42d3-a456-426614174000')],
  varint: [Integer.fromString('340282366920938463463374607431768211456'), Integer.fromNumber(-129)],
  'list<int>': [[1, 2, 1]],
  'set<text>': [['a', 'b']],
  'map<text, int>': [{ a: 1, b: 2 }],
  'frozen<list<int>>': [[3, 1]],
  'tuple<int, text>': [new Tuple(1, 'a')],
  'map<int, frozen<list<text>>>': [{ 1: ['a'], 2: ['b', 'c'] }],
  'vector<float, 3>': [new Vector(new Float32Array([1, 2, 3.5]))],
};

test('types', async (client) => {
  let number = 0;
  for (const [kind, all] of Object.entries(values)) {
    const table = `${KS}.type_${number++}`;
    await client.execute(`CREATE TABLE ${table} (k int PRIMARY KEY, v ${kind})`);
    for (const [k, value] of [...all, null].entries()) {
      await client.execute(`INSERT INTO ${table} (k, v) VALUES (?, ?)`, [k, value], { prepare: true });
      const found = await client.execute(`SELECT v FROM ${table} WHERE k = ?`, [k], { prepare: true });
      assert.strictEqual(show(found.first().v), show(value), kind);
    }
  }
});

test('paging', async (client) => {
  await client.execute(`CREATE TABLE ${KS}.pages (k int, c int, PRIMARY KEY (k, c))`);
  const insert = `INSERT INTO ${KS}.pages (k, c) VALUES (?, ?)`;
  for (let c = 0; c < 100; c++) await client.execute(insert, [1, c], { prepare: true });
  for (const fetchSize of [1, 7, 50, 100, 1000]) {
    const seen = [];
    const query = `SELECT c FROM ${KS}.pages WHERE k = 1`;
    for await (const row of client.stream(query, [], { fetchSize, prepare: true, autoPage: true })) seen.push(row.c);
    assert.deepStrictEqual(seen, [...Array(100).keys()]);
  }
  const first = await client.execute(`SELECT c FROM ${KS}.pages`, [], { fetchSize: 10 });
  const second = await client.execute(`SELECT c FROM ${KS}.pages`, [], { fetchSize: 10, pageState: first.pageState });
  assert.strictEqual(second.first().c, 10);
});

test('prepared statements', async (client) => {
  await client.execute(`CREATE TABLE ${KS}.prep (a int, b text, c int, v int, PRIMARY KEY ((a, b), c))`);
  await client.execute(`INSERT INTO ${KS}.prep (c, b, a, v) VALUES (?, ?, ?, ?)`, [1, 'x', 2, 3], { prepare: true });
  await client.execute(`INSERT INTO ${KS}.prep (c, b, a, v) VALUES (:c, :b, :a, :v)`, { a: 2, b: 'x', c: 2, v: 4 },
    { prepare: true });
  await client.execute(`INSERT INTO ${KS}.prep (c, b, a) VALUES (?, ?, ?)`, [3, 'x', 2], { hints: ['int', 'text', 'int'] });
  const found = await client.execute(`SELECT c, v FROM ${KS}.prep WHERE a = ? AND b = ?`, [2, 'x'], { prepare: true });
  assert.deepStrictEqual(found.rows.map((r) => [r.c, r.v]), [[1, 3], [2, 4], [3, null]]);
  await client.execute(`INSERT INTO ${KS}.prep (c, b, a, v) VALUES (?, ?, ?, ?)`, [1, 'x', 2, types.unset], { prepare: true });
  const kept = await client.execute(`SELECT v FROM ${KS}.prep WHERE a = 2 AND b = 'x' AND c = 1`);
  assert.strictEqual(kept.first().v, 3);
});

test('many in flight', async (client) => {
  await client.execute(`CREATE TABLE ${KS}.many (k int PRIMARY KEY, v int)`);
  await cassandra.concurrent.executeConcurrent(client, `INSERT INTO ${KS}.many (k, v) VALUES (?, ?)`,
    [...Array(2000).keys()].map((k) => [k, k * 2]), { concurrencyLevel: 200 });
  const counted = await client.execute(`SELECT count(*) AS n, sum(v) AS s FROM ${KS}.many`);
  assert.strictEqual(counted.first().n.toString(), '2000');
  assert.strictEqual(counted.first().s, 1999 * 2000);
});

test('batches', async (client) => {
  await client.execute(`CREATE TABLE ${KS}.batched (k int, c int, v text, PRIMARY KEY (k, c))`);
  const query = `INSERT INTO ${KS}.batched (k, c, v) VALUES (?, ?, ?)`;
  await client.batch([...Array(10).keys()].map((c) => ({ query, params: [1, c, `${c}`] })), { prepare: true });
  await client.batch([`INSERT INTO ${KS}.batched (k, c, v) VALUES (1, 10, 'ten')`, { query, params: [1, 11, 'x'] }],
    { prepare: true, logged: false });
  assert.strictEqual((await client.execute(`SELECT * FROM ${KS}.batched`)).rowLength, 12);
  await client.execute(`CREATE TABLE ${KS}.counted (k int PRIMARY KEY, n counter)`);
  const count = `UPDATE ${KS}.counted SET n = n + ? WHERE k = 1`;
  await client.batch([{ query: count, params: [5] }, { query: count, params: [6] }], { prepare: true, counter: true });
  assert.strictEqual((await client.execute(`SELECT n FROM ${KS}.counted`)).first().n.toString(), '11');
});

test('conditional updates', async (client) => {
  await client.execute(`CREATE TABLE ${KS}.lwt (k int PRIMARY KEY, v int)`);
  assert((await client.execute(`INSERT INTO ${KS}.lwt (k, v) VALUES (1, 1) IF NOT EXISTS`)).wasApplied());
  const again = await client.execute(`INSERT INTO ${KS}.lwt (k, v) VALUES (1, 2) IF NOT EXISTS`);
  assert(!again.wasApplied() && again.first().v === 1);
});

test('user types', async (client) => {
  await client.execute(`CREATE TYPE ${KS}.address (street text, number int, tags frozen<set<text>>)`);
  await client.execute(`CREATE TABLE ${KS}.people (k int PRIMARY KEY, a address, l list<frozen<address>>)`);
  const address = { street: 's', number: 5, tags: ['x'] };
  await client.execute(`INSERT INTO ${KS}.people (k, a, l) VALUES (?, ?, ?)`, [1, address, [{ street: 't' }]], { prepare: true });
  const row = (await client.execute(`SELECT a, l FROM ${KS}.people`)).first();
  assert.deepStrictEqual({ ...row.a }, address);
  assert.strictEqual(row.l[0].street, 't');
});

test('metadata', async (client) => {
  await client.execute(`CREATE TABLE ${KS}.meta (a int, b text, c timeuuid, d int, s int static, v list<int>,
    PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC) AND comment = 'told'`);
  const table = await client.metadata.getTable(KS, 'meta');
  assert.deepStrictEqual(table.partitionKeys.map((c) => c.name), ['a', 'b']);
  assert.deepStrictEqual(table.clusteringKeys.map((c) => c.name), ['c', 'd']);
  assert.deepStrictEqual(table.clusteringOrder, ['DESC', 'ASC']);
  assert.strictEqual(table.comment, 'told');
  assert.strictEqual(table.columnsByName.v.type.code, types.dataTypes.list);
  assert(table.columnsByName.s.isStatic);
  const udt = await client.metadata.getUdt(KS, 'address');
  assert.deepStrictEqual(udt.fields.map((f) => f.name), ['street', 'number', 'tags']);
  assert(client.metadata.keyspaces[KS].strategy.endsWith('SimpleStrategy'));
  assert.strictEqual(await client.metadata.getTable(KS, 'nothing'), null);
  const node = client.hosts.values()[0];
  assert.deepStrictEqual([node.datacenter, node.rack], ['datacenter1', 'rack1']);
  assert((await client.metadata.getTable('system_views', 'clients')).virtual);
});

test('schema events', async (client) => {
  const other = connect();
  await other.connect();
  const seen = async (holds) => {
    for (let i = 0; i < 100; i++) {
      if (await holds()) return;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error('no schema event within ten seconds');
  };
  await client.execute(`CREATE KEYSPACE ${KS}_2 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
  await seen(() => other.metadata.keyspaces[`${KS}_2`]);
  await client.execute(`CREATE TABLE ${KS}_2.event (k int PRIMARY KEY)`);
  assert.strictEqual((await other.metadata.getTable(`${KS}_2`, 'event')).columns.length, 1);
  await client.execute(`ALTER TABLE ${KS}_2.event ADD v text`);
  await seen(async () => (await other.metadata.getTable(`${KS}_2`, 'event')).columns.length === 2);
  await client.execute(`DROP KEYSPACE ${KS}_2`);
  await seen(() => !other.metadata.keyspaces[`${KS}_2`]);
  await other.shutdown();
});

test('token awareness', async (client) => {
  await client.execute(`CREATE TABLE ${KS}.tok (k blob PRIMARY KEY)`);
  const tokenizer = client.metadata.tokenizer;
  for (let i = 1; i < 60; i++) {
    const key = Buffer.alloc(i, 128 + i);
    await client.execute(`INSERT INTO ${KS}.tok (k) VALUES (?)`, [key], { prepare: true });
  }
  const rows = (await client.execute(`SELECT k, token(k) AS t FROM ${KS}.tok`)).rows;
  assert.strictEqual(rows.length, 59);
  for (const row of rows) {
    assert.strictEqual(tokenizer.hash(row.k).getValue().toString(), row.t.toString());
    assert.strictEqual(client.getReplicas(KS, row.k).length, 1);
  }
});

test('errors', async (client) => {
  const { responseErrorCodes: codes } = types;
  for (const [query, code] of [
    ['SELEC * FROM t', codes.syntaxError],
    [`SELECT * FROM ${KS}.nothing`, codes.invalid],
    [`CREATE TABLE ${KS}.many (k int PRIMARY KEY)`, codes.alreadyExists],
  ]) {
    await assert.rejects(client.execute(query), (e) => e.code === code, query);
  }
});

test('tracing', async (client) => {
  const done = await client.execute(`SELECT * FROM ${KS}.many WHERE k = 1`, [], { traceQuery: true });
  const trace = await client.metadata.getTrace(done.info.traceId);
  assert(trace.duration >= 0 && trace.events.length > 0);
});

test('versions 3 and 4', async () => {
  for (const maxVersion of [3, 4]) {
    const client = connect({ protocolOptions: { port: Number(port), maxVersion } });
    assert.strictEqual((await client.execute(`SELECT v FROM ${KS}.many WHERE k = ?`, [3], { prepare: true })).first().v, 6);
    await client.shutdown();
  }
});

test('keyspace of the session', async () => {
  const client = connect({ keyspace: KS });
  assert.strictEqual((await client.execute('SELECT v FROM many WHERE k = 4')).first().v, 8);
  await client.shutdown();
  await assert.rejects(connect({ keyspace: 'nothing' }).connect());
});

(async () => {
  const client = connect();
  await client.connect();
  await client.execute(`DROP KEYSPACE IF EXISTS ${KS}`);
  await client.execute(`DROP KEYSPACE IF EXISTS ${KS}_2`);
  await client.execute(`CREATE KEYSPACE ${KS} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
  let failed = 0;
  for (const [name, f] of tests) {
    try {
      await f(client);
      console.log(`PASS ${name}`);
    } catch (e) {
      failed++;
      console.log(`FAIL ${name}: ${String(e.stack).split('\n').slice(0, 3).join(' ').slice(0, 400)}`);
    }
  }
  await client.execute(`DROP KEYSPACE IF EXISTS ${KS}`);
  await client.shutdown();
  console.log(`node: ${tests.length - failed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
})().catch((e) => {
  console.log(`FAIL to start: ${e.stack}`);
  console.log(`node: 0 passed, ${tests.length} failed`);
  process.exit(1);
});
