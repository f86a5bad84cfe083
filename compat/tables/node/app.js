// What an application does with Azure's library for tables in JavaScript, against any table storage.
//
// app.js CONNECTION-STRING [throttle]; a line for each check, `node: N passed, N failed, N known` at the end. TABLES_KNOWN names a file of
// checks that the other side is known to fail, NODE_EXTRA_CA_CERTS a PEM file to trust.

import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { AzureNamedKeyCredential, AzureSASCredential, generateAccountSas, generateTableSas, odata, TableClient, TableServiceClient } from "@azure/data-tables";

const DEV_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const [, , CONNECTION, mode] = process.argv;
const THROTTLED = mode === "throttle";
const OPTIONS = { allowInsecureConnection: true };
const parts = new Map(CONNECTION.split(";").map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]));
const DEVELOPMENT = parts.get("UseDevelopmentStorage") === "true";
const ACCOUNT = DEVELOPMENT ? "devstoreaccount1" : parts.get("AccountName");
const KEY = DEVELOPMENT ? DEV_KEY : parts.get("AccountKey");
const ENDPOINT = DEVELOPMENT ? "http://127.0.0.1:10002/devstoreaccount1" : parts.get("TableEndpoint");
const CREDENTIAL = new AzureNamedKeyCredential(ACCOUNT, KEY);
const SERVICE = TableServiceClient.fromConnectionString(CONNECTION, OPTIONS);

const client = (name, options = {}) => TableClient.fromConnectionString(CONNECTION, name, { ...OPTIONS, ...options });
const name = () => "node" + randomUUID().replaceAll("-", "").slice(0, 12);
const entity = (rowKey, more = {}, partitionKey = "p") => ({ partitionKey, rowKey, ...more });

async function table(options) {
  const made = client(name(), options);
  await made.createTable();
  return made;
}

async function all(listed) {
  const found = [];
  for await (const one of listed) found.push(one);
  return found;
}

const rows = async (t, filter) => (await all(t.listEntities({ queryOptions: filter === undefined ? {} : { filter } }))).map((e) => e.rowKey);

// Some errors of the library have no code of their own.
function codeOf(error) {
  const details = error.details?.odataError?.code ?? error.details?.errorCode ?? error.code;
  if (details && details !== "REQUEST_SEND_ERROR") return details;
  const header = error.response?.headers?.get("x-ms-error-code");
  if (header) return header;
  const body = error.response?.bodyAsText ?? "";
  return body.startsWith("{") ? JSON.parse(body)["odata.error"].code : body.slice(0, 60);
}

async function refused(call, status, code) {
  let error;
  try {
    await call();
  } catch (caught) {
    error = caught;
  }
  assert(error, `expected ${status} ${code}, and it was done`);
  if (error.statusCode === undefined) throw error;
  assert.deepEqual([error.statusCode, codeOf(error)], [status, code]);
  return error;
}

async function fill(t, count, partitionKey = "p") {
  for (let first = 0; first < count; first += 100) {
    const batch = [];
    for (let n = first; n < Math.min(count, first + 100); n++) batch.push(["create", entity(String(n).padStart(5, "0"), { n }, partitionKey)]);
    await t.submitTransaction(batch);
  }
}

const hour = (hours) => new Date(Date.now() + hours * 3_600_000);
const bySas = (t, sas) => new TableClient(ENDPOINT, t.tableName, new AzureSASCredential(sas), OPTIONS);

// Posts bytes to $batch as the library does not let an application do it.
async function post(body, boundary) {
  const date = new Date().toUTCString();
  const url = new URL(`${ENDPOINT}/$batch`);
  const signature = createHmac("sha256", Buffer.from(KEY, "base64")).update(`${date}\n/${ACCOUNT}${url.pathname}`, "utf8").digest("base64");
  const headers = {
    "x-ms-date": date,
    "x-ms-version": "2019-02-02",
    accept: "application/json",
    "content-type": `multipart/mixed; boundary=${boundary}`,
    authorization: `SharedKeyLite ${ACCOUNT}:${signature}`,
  };
  const answer = await fetch(url, { method: "POST", headers, body });
  return { status: answer.status, text: await answer.text() };
}

const CHECKS = {
  async tables_are_created_listed_and_deleted() {
    const prefix = name();
    const names = ["a", "B", "c"].map((letter) => prefix + letter);
    for (const one of names) await SERVICE.createTable(one);
    // The library takes "it exists" as success.
    await SERVICE.createTable(names[0]);
    const found = await all(SERVICE.listTables({ queryOptions: { filter: odata`TableName ge ${prefix} and TableName lt ${prefix + "~"}` } }));
    assert.deepEqual(found.map((t) => t.name).sort(), [...names].sort());
    for (const one of names) await SERVICE.deleteTable(one);
    assert.deepEqual(await all(SERVICE.listTables({ queryOptions: { filter: odata`TableName eq ${names[0]}` } })), []);
  },

  async tables_come_in_pages() {
    const prefix = name();
    const names = [0, 1, 2, 3, 4].map((n) => `${prefix}${n}`);
    for (const one of names) await SERVICE.createTable(one);
    const found = [];
    for await (const page of SERVICE.listTables().byPage({ maxPageSize: 2 })) {
      assert(page.length <= 2);
      found.push(...page.map((t) => t.name));
    }
    for (const one of names) assert(found.includes(one), one);
    for (const one of names) await SERVICE.deleteTable(one);
  },

  async bad_table_names_are_refused() {
    for (const one of ["1abc", "a-b"]) await refused(() => SERVICE.createTable(one), 400, "InvalidResourceName");
    await refused(() => SERVICE.createTable("ab"), 400, "OutOfRangeInput");
  },

  async a_missing_table_is_named() {
    const t = client("nosuchtable");
    await refused(() => t.createEntity(entity("r")), 404, "TableNotFound");
    await refused(() => all(t.listEntities()), 404, "TableNotFound");
  },

  async every_type_comes_back() {
    const t = await table();
    const values = {
      text: "grüße 😀 it's",
      empty: "",
      small: 42,
      ratio: 3.25,
      yes: true,
      no: false,
      big: 2n ** 40n,
      least: -(2n ** 63n),
      when: new Date("2020-02-29T01:02:03.456Z"),
      id: { type: "Guid", value: "a455c695-df98-5678-aaaa-81d3367e5a34" },
      bytes: Uint8Array.from([...Array(256).keys()]),
    };
    await t.createEntity(entity("r", values));
    const got = await t.getEntity("p", "r");
    for (const [key, value] of Object.entries(values)) {
      const found = got[key];
      if (value instanceof Date) assert.equal(new Date(found).getTime(), value.getTime());
      else if (value instanceof Uint8Array) assert.deepEqual([...found], [...value]);
      else assert.deepEqual(found, value, key);
    }
    assert.match(got.etag, /^W\/"datetime'/);
    assert(!Number.isNaN(Date.parse(got.timestamp)));
    const typed = await t.getEntity("p", "r", { disableTypeConversion: true });
    assert.deepEqual(typed.big, { value: String(2n ** 40n), type: "Int64" });
  },

  async typed_values_may_be_strings() {
    const t = await table();
    await t.createEntity(entity("r", { i: { type: "Int32", value: "12345" }, b: { type: "Boolean", value: "true" }, d: { type: "Double", value: "2.5" } }));
    const got = await t.getEntity("p", "r");
    assert.deepEqual([got.i, got.b, got.d], [12345, true, 2.5]);
  },

  async keys_may_be_odd() {
    const t = await table();
    for (const key of ["", " ", "it's", "''", "a b", "100%", "ü", "😀", "+", "a&b=c", "(x)", "%27", "~"]) {
      await t.createEntity({ partitionKey: key, rowKey: key, v: key });
      assert.equal((await t.getEntity(key, key)).v, key);
      await t.upsertEntity({ partitionKey: key, rowKey: key, w: 1 }, "Replace");
      await t.updateEntity({ partitionKey: key, rowKey: key, w: 2 }, "Merge");
      assert.deepEqual(await rows(t, odata`PartitionKey eq ${key} and RowKey eq ${key}`), [key]);
      await t.deleteEntity(key, key);
    }
    assert.deepEqual(await rows(t), []);
  },

  async an_insert_meets_what_is_there() {
    const t = await table();
    const made = await t.createEntity(entity("r"));
    assert.match(made.etag, /^W\//);
    assert.equal(made.preferenceApplied, "return-no-content");
    await refused(() => t.createEntity(entity("r")), 409, "EntityAlreadyExists");
  },

  async what_is_missing_is_not_found() {
    const t = await table();
    await refused(() => t.getEntity("p", "r"), 404, "ResourceNotFound");
    await refused(() => t.updateEntity(entity("r")), 404, "ResourceNotFound");
    await refused(() => t.deleteEntity("p", "r"), 404, "ResourceNotFound");
  },

  async updates_merge_or_replace() {
    const t = await table();
    await t.createEntity(entity("r", { a: 1, b: 2 }));
    await t.updateEntity(entity("r", { b: 3, c: 4 }), "Merge");
    let got = await t.getEntity("p", "r");
    assert.deepEqual([got.a, got.b, got.c], [1, 3, 4]);
    await t.updateEntity(entity("r", { d: 5 }), "Replace");
    got = await t.getEntity("p", "r");
    assert.deepEqual([got.a, got.d], [undefined, 5]);
    await t.upsertEntity(entity("r", { e: 6 }), "Merge");
    got = await t.getEntity("p", "r");
    assert.deepEqual([got.d, got.e], [5, 6]);
    await t.upsertEntity(entity("r", { e: "text" }), "Replace");
    got = await t.getEntity("p", "r");
    assert.deepEqual([got.d, got.e], [undefined, "text"]);
    await t.upsertEntity(entity("new"), "Merge");
    await t.upsertEntity(entity("newer"), "Replace");
    assert.deepEqual(await rows(t), ["new", "newer", "r"]);
  },

  async a_tag_guards_an_update() {
    const t = await table();
    await t.createEntity(entity("r", { n: 1 }));
    const { etag } = await t.getEntity("p", "r");
    const done = await t.updateEntity(entity("r", { n: 2 }), "Replace", { etag });
    assert.notEqual(done.etag, etag);
    assert.equal(done.etag, (await t.getEntity("p", "r")).etag);
    await refused(() => t.updateEntity(entity("r", { n: 3 }), "Replace", { etag }), 412, "UpdateConditionNotSatisfied");
    await refused(() => t.updateEntity(entity("r", { n: 3 }), "Merge", { etag }), 412, "UpdateConditionNotSatisfied");
    await refused(() => t.deleteEntity("p", "r", { etag }), 412, "UpdateConditionNotSatisfied");
    await t.deleteEntity("p", "r", { etag: done.etag });
  },

  async racing_increments_lose_nothing() {
    const t = await table();
    await t.createEntity(entity("r", { n: 0 }));
    const increment = async () => {
      for (let done = 0; done < 5; ) {
        const got = await t.getEntity("p", "r");
        try {
          await t.updateEntity(entity("r", { n: got.n + 1 }), "Replace", { etag: got.etag });
          done++;
        } catch (error) {
          if (error.statusCode !== 412) throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, increment));
    assert.equal((await t.getEntity("p", "r")).n, 40);
  },

  async a_transaction_does_all() {
    const t = await table();
    for (const row of ["u", "m", "d"]) await t.createEntity(entity(row, { a: 1, b: 1 }));
    const done = await t.submitTransaction([
      ["create", entity("c", { a: 2 })],
      ["update", entity("u", { a: 2 }), "Replace"],
      ["update", entity("m", { a: 2 }), "Merge"],
      ["upsert", entity("x", { a: 2 }), "Replace"],
      ["upsert", entity("y", { a: 2 }), "Merge"],
      ["delete", entity("d")],
    ]);
    assert.equal(done.status, 202);
    assert.deepEqual(done.subResponses.map((one) => one.status), [204, 204, 204, 204, 204, 204]);
    for (const one of done.subResponses.slice(0, 5)) assert.match(one.etag, /^W\//);
    assert.equal(done.getResponseForEntity("c")?.etag, (await t.getEntity("p", "c")).etag);
    const got = Object.fromEntries((await all(t.listEntities())).map((e) => [e.rowKey, [e.a, e.b]]));
    assert.deepEqual(got, { c: [2, undefined], m: [2, 1], u: [2, undefined], x: [2, undefined], y: [2, undefined] });
  },

  async a_transaction_fails_as_a_whole_and_tells_the_index() {
    const t = await table();
    await t.createEntity(entity("there"));
    let error = await refused(() => t.submitTransaction([["create", entity("b0")], ["upsert", entity("b1")], ["create", entity("there")]]), 409, "EntityAlreadyExists");
    assert.match(error.message, /^2:/);
    error = await refused(() => t.submitTransaction([["create", entity("b0")], ["update", entity("none")]]), 404, "ResourceNotFound");
    assert.match(error.message, /^1:/);
    const etag = "W/\"datetime'2020-07-24T14%3A34%3A48.4767Z'\"";
    error = await refused(() => t.submitTransaction([["create", entity("b0")], ["update", entity("there", { a: 1 }), "Merge", { etag }]]), 412, "UpdateConditionNotSatisfied");
    assert.match(error.message, /^1:/);
    assert.deepEqual(await rows(t), ["there"]);
  },

  async a_transaction_names_a_row_once() {
    const t = await table();
    const error = await refused(() => t.submitTransaction([["create", entity("a")], ["upsert", entity("a")]]), 400, "InvalidDuplicateRow");
    assert.match(error.message, /^1:/);
  },

  async a_transaction_has_one_partition_key() {
    const t = await table();
    const part = (partitionKey) => {
      const json = JSON.stringify({ PartitionKey: partitionKey, RowKey: "r" });
      return `--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST ${ENDPOINT}/${t.tableName} HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\nPrefer: return-no-content\r\nContent-Length: ${json.length}\r\n\r\n${json}\r\n`;
    };
    const body = `--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n${part("p")}${part("q")}--changeset_1--\r\n--batch_1--\r\n`;
    const { status, text } = await post(body, "batch_1");
    assert.equal(status, 202);
    assert.match(text, /HTTP\/1.1 400 Bad Request/);
    assert.match(text, /CommandsInBatchActOnDifferentPartitions/);
    assert.match(text, /"value":"1:All commands in a batch must operate on same entity group/);
    assert.deepEqual(await rows(t), []);
  },

  async a_transaction_has_at_most_100_operations() {
    const t = await table();
    const batch = (count) => Array.from({ length: count }, (_, n) => ["upsert", entity(String(n).padStart(3, "0"))]);
    assert.equal((await t.submitTransaction(batch(100))).subResponses.length, 100);
    await refused(() => t.submitTransaction(batch(101)), 400, "InvalidInput");
  },

  async pages_continue_from_their_token() {
    const t = await table();
    await fill(t, 25);
    const pages = t.listEntities({ queryOptions: { filter: "PartitionKey eq 'p'" } }).byPage({ maxPageSize: 10 });
    const { value: first } = await pages.next();
    assert.deepEqual(first.map((e) => e.n), [...Array(10).keys()]);
    const found = [];
    for await (const page of client(t.tableName).listEntities({ queryOptions: { filter: "PartitionKey eq 'p'" } }).byPage({ maxPageSize: 10, continuationToken: first.continuationToken })) {
      found.push(...page.map((e) => e.n));
    }
    assert.deepEqual(found, [...Array(15).keys()].map((n) => n + 10));
  },

  async a_page_has_at_most_1000_entities() {
    const t = await table();
    await fill(t, 1100);
    const sizes = [];
    for await (const page of t.listEntities().byPage()) sizes.push(page.length);
    assert.deepEqual([Math.max(...sizes), sizes.reduce((a, b) => a + b)], [1000, 1100]);
  },

  async filters_select() {
    const t = await table();
    await t.createEntity(entity("1", { i: 5, s: "Smith", b: true, d: 1.5, when: new Date("2008-07-10T00:00:00Z") }));
    await t.createEntity(entity("2", { i: 7, s: "it's", b: false, d: 2.25, g: { type: "Guid", value: "a455c695-df98-5678-aaaa-81d3367e5a34" } }));
    await t.createEntity(entity("3", { big: 2n ** 40n, x: Uint8Array.from([1, 255]) }));
    await t.createEntity(entity("1", { i: 5 }, "q"));
    for (const [filter, expected] of [
      [odata`i eq ${5}`, ["1", "1"]],
      [odata`s eq ${"it's"}`, ["2"]],
      [odata`b eq ${true}`, ["1"]],
      [odata`d gt ${1.75}`, ["2"]],
      [odata`big eq ${2n ** 40n}`, ["3"]],
      [odata`when eq ${new Date("2008-07-10T00:00:00Z")}`, ["1"]],
      ["g eq guid'a455c695-df98-5678-aaaa-81d3367e5a34'", ["2"]],
      ["x eq X'01ff'", ["3"]],
      ["PartitionKey eq 'p' and RowKey ge '2'", ["2", "3"]],
      ["PartitionKey gt 'p'", ["1"]],
      ["not (i eq 5)", ["2", "3"]],
    ]) {
      assert.deepEqual(await rows(t, filter), expected, filter);
    }
  },

  async a_wrong_filter_is_refused() {
    const t = await table();
    await t.createEntity(entity("r"));
    const error = await refused(() => rows(t, "aaa bbb ccc"), 400, "InvalidInput");
    assert.match(error.message, /Syntax error/);
  },

  async select_narrows() {
    const t = await table();
    await fill(t, 3);
    const got = await all(t.listEntities({ queryOptions: { select: ["n"] } }));
    assert.deepEqual(got.map((e) => [e.n, e.rowKey]), [[0, undefined], [1, undefined], [2, undefined]]);
    assert.equal((await t.getEntity("p", "00001", { queryOptions: { select: ["n"] } })).n, 1);
  },

  async properties_have_limits() {
    const t = await table();
    const many = (count) => Object.fromEntries([...Array(count).keys()].map((n) => [`p${n}`, n]));
    await t.createEntity(entity("most", many(252)));
    await refused(() => t.createEntity(entity("more", many(253))), 400, "TooManyProperties");
    await refused(() => t.createEntity(entity("value", { s: "x".repeat(32769) })), 400, "PropertyValueTooLarge");
  },

  async a_table_sas_permits_what_it_says() {
    const t = await table();
    await t.createEntity(entity("r"));
    const reader = bySas(t, generateTableSas(t.tableName, CREDENTIAL, { permissions: { query: true }, expiresOn: hour(1) }));
    assert.deepEqual(await rows(reader), ["r"]);
    await refused(() => reader.createEntity(entity("s")), 403, "AuthorizationPermissionMismatch");
    const writer = bySas(t, generateTableSas(t.tableName, CREDENTIAL, { permissions: { add: true, update: true }, expiresOn: hour(1) }));
    await writer.createEntity(entity("s"));
    await writer.submitTransaction([["create", entity("v")], ["update", entity("s", { a: 1 }), "Merge"]]);
    await refused(() => rows(writer), 403, "AuthorizationPermissionMismatch");
  },

  async a_sas_ends() {
    const t = await table();
    const late = bySas(t, generateTableSas(t.tableName, CREDENTIAL, { permissions: { query: true }, startsOn: hour(-2), expiresOn: hour(-1) }));
    await refused(() => rows(late), 403, "AuthenticationFailed");
  },

  async an_account_sas_permits_what_it_says() {
    const t = await table();
    await t.createEntity(entity("r"));
    const sas = generateAccountSas(CREDENTIAL, { permissions: { query: true, list: true }, resourceTypes: "sco", expiresOn: hour(1) });
    const service = new TableServiceClient(ENDPOINT, new AzureSASCredential(sas), OPTIONS);
    assert((await all(service.listTables())).some((one) => one.name === t.tableName));
    const reader = bySas(t, sas);
    assert.deepEqual(await rows(reader), ["r"]);
    await refused(() => reader.deleteEntity("p", "r"), 403, "AuthorizationPermissionMismatch");
  },

  async a_stored_policy_rules_its_sas() {
    const t = await table();
    await t.createEntity(entity("r"));
    await t.setAccessPolicy([{ id: "reader", accessPolicy: { start: hour(-1), expiry: hour(1), permission: "r" } }]);
    const got = await t.getAccessPolicy();
    assert.deepEqual([got[0].id, got[0].accessPolicy.permission], ["reader", "r"]);
    const reader = bySas(t, generateTableSas(t.tableName, CREDENTIAL, { identifier: "reader" }));
    assert.deepEqual(await rows(reader), ["r"]);
    await refused(() => reader.createEntity(entity("s")), 403, "AuthorizationPermissionMismatch");
    await t.setAccessPolicy([]);
    await refused(() => rows(reader), 403, "AuthenticationFailed");
  },

  async properties_of_the_service_are_kept() {
    const retentionPolicy = { enabled: true, days: 7 };
    await SERVICE.setProperties({
      logging: { version: "1.0", delete: true, read: false, write: true, retentionPolicy },
      hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy },
      cors: [{ allowedOrigins: "https://example.org", allowedMethods: "GET,PUT", allowedHeaders: "x-a", exposedHeaders: "x-b", maxAgeInSeconds: 60 }],
    });
    const got = await SERVICE.getProperties();
    assert.deepEqual([got.logging.delete, got.logging.read, got.logging.retentionPolicy.days], [true, false, 7]);
    assert.deepEqual([got.cors[0].allowedOrigins, got.cors[0].maxAgeInSeconds], ["https://example.org", 60]);
    const preflight = await fetch(`${ENDPOINT}/Tables`, {
      method: "OPTIONS",
      headers: { origin: "https://example.org", "access-control-request-method": "GET", "access-control-request-headers": "x-a" },
    });
    assert.deepEqual([preflight.status, preflight.headers.get("access-control-allow-origin")], [200, "https://example.org"]);
    const other = await fetch(`${ENDPOINT}/Tables`, { method: "OPTIONS", headers: { origin: "https://example.com", "access-control-request-method": "GET" } });
    assert.equal(other.status, 403);
    await SERVICE.setProperties({ cors: [] });
  },

  async the_statistics_of_the_secondary_are_served() {
    // In the form of address that has the account in its path, the libraries do not find the secondary one.
    const date = new Date().toUTCString();
    const url = new URL(`${ENDPOINT}-secondary/?restype=service&comp=stats`);
    const signature = createHmac("sha256", Buffer.from(KEY, "base64")).update(`${date}\n/${ACCOUNT}${url.pathname}?comp=stats`, "utf8").digest("base64");
    const answer = await fetch(url, { headers: { "x-ms-date": date, "x-ms-version": "2019-02-02", authorization: `SharedKeyLite ${ACCOUNT}:${signature}` } });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    assert.match(text, /<Status>live<\/Status>/);
  },

  async a_wrong_key_is_refused() {
    const wrong = new TableServiceClient(ENDPOINT, new AzureNamedKeyCredential(ACCOUNT, "d3Jvbmc="), OPTIONS);
    await refused(() => all(wrong.listTables()), 403, "AuthenticationFailed");
  },

  async retries_go_through_throttling() {
    if (!THROTTLED) return;
    let busy = 0;
    const t = await table({ retryOptions: { maxRetries: 10 } });
    t.pipeline?.addPolicy?.({
      name: "busy",
      async sendRequest(request, next) {
        const answer = await next(request);
        if (answer.status === 503) busy++;
        return answer;
      },
    }, { afterPhase: "Retry" });
    const start = Date.now();
    await Promise.all(
      [0, 1, 2, 3].map(async (writer) => {
        for (let batch = 0; batch < 12; batch++) {
          await t.submitTransaction(Array.from({ length: 100 }, (_, n) => ["upsert", entity(`${writer}-${batch}-${n}`)]));
        }
      }),
    );
    assert.equal((await rows(t)).length, 4800);
    assert(busy > 0, "4,800 entities of one partition met no limit");
    console.log(`      ${busy} answers 503, ${Date.now() - start} ms`);
  },
};

const known = new Map();
if (process.env.TABLES_KNOWN) {
  for (const line of readFileSync(process.env.TABLES_KNOWN, "utf8").split("\n")) {
    const [check, ...why] = line.split(": ");
    if (check && !check.startsWith("#")) known.set(check, why.join(": "));
  }
}
const counts = { passed: 0, failed: 0, known: 0 };
for (const [check, run] of Object.entries(CHECKS)) {
  if (THROTTLED && !check.includes("throttling")) continue;
  try {
    await run();
    counts.passed++;
    console.log(`ok    ${check}`);
  } catch (error) {
    if (known.has(check)) {
      counts.known++;
      console.log(`known ${check}: ${known.get(check)}`);
    } else {
      counts.failed++;
      console.log(`FAIL  ${check}: ${error.name}: ${error.message.split("\n").slice(0, 4).join(" ")}`);
      if (process.env.TABLES_TRACE) console.log(error.stack);
    }
  }
}
console.log(`node: ${counts.passed} passed, ${counts.failed} failed, ${counts.known} known`);
process.exit(counts.failed ? 1 : 0);
