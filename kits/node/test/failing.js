// A test that fails; kit.test.js runs it and reads its output.

import { test } from "node:test";
import { useServer } from "helenus-test";

const server = useServer({ args: ["--log=debug"] });

test("fails", async () => {
  await server.clock();
  throw new Error("on purpose");
});
