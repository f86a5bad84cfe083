import assert from "node:assert/strict";
import { test } from "node:test";
import { useServer } from "helenus-test";

/** A hundred tests that each write one row and find no other. */
export function hundredTests(first) {
  const server = useServer();
  let cql;
  for (let id = first; id < first + 100; id++) {
    test(`row ${id} is alone`, async () => {
      cql ??= await server.session("same");
      await cql.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)");
      await cql.execute("INSERT INTO t (k) VALUES (?)", [id], { prepare: true });
      const { rows } = await cql.execute("SELECT k FROM t");
      assert.deepEqual(rows.map((row) => row.k), [id]);
    });
  }
}
