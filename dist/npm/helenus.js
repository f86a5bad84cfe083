#!/usr/bin/env node
"use strict";
// `npx helenus-server …`: the program in place of this process, as far as Node has that: its input and output, its signals, its exit code.

const { spawn } = require("node:child_process");
const child = spawn(require("./index.js").path, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`helenus: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else process.exit(code);
});
