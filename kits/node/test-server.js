import { after, afterEach, before, beforeEach } from "node:test";
import { start } from "./index.js";

/**
 * One server for the tests of this file (node:test runs each file in a process of its own), emptied before each test: no faults, full
 * budgets, today's time, no rows. Tables that earlier tests made are there, and empty. When a test fails, the last lines of the server's log
 * go to standard error. `options` are those of `start`. Returns the server; its properties are there once the first test begins.
 *
 *     const server = useServer();
 *     test("a cart expires", async () => { const cql = await server.session("shop"); … });
 */
export function useServer(options) {
  let server;
  before(async () => {
    server = await start(options);
  });
  beforeEach(() => server.reset({ keep: "schema" }));
  afterEach((context) => {
    if (context.error) console.error(`the last lines of the Helenus log:\n${server.log}`);
  });
  after(() => server?.stop());
  return new Proxy(
    {},
    {
      get(_, name) {
        if (!server) throw new Error("the server is there once the first test begins");
        const value = Reflect.get(server, name, server);
        return typeof value === "function" ? value.bind(server) : value;
      },
    },
  );
}
