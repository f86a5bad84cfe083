/** Where the server's program is. Nothing is downloaded. */

import { accessSync, chmodSync, constants, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createHash, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";

const NAME = process.platform === "win32" ? "helenus.exe" : "helenus";

/** The path of the program: the argument, else HELENUS_BIN, else that of the package helenus-server, else `helenus` in PATH. */
export function findProgram(program) {
  for (const candidate of [program, process.env.HELENUS_BIN, carriedProgram()]) {
    if (!candidate) continue;
    if (!isProgram(candidate)) throw new Error(`${candidate} is not a program`);
    return candidate;
  }
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const candidate = join(folder, NAME);
    if (folder && isProgram(candidate)) return candidate;
  }
  throw new Error("there is no helenus in PATH: set HELENUS_BIN to the program, or install the package helenus-server; in a clone `cargo build --release` makes target/release/helenus");
}

/**
 * Writes a program that an archive carries into the cache directory, under the sum of its bytes, and returns the path. A rename puts it there
 * whole, so that processes that start at the same time never run half of it.
 */
export function extractProgram(bytes, cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache")) {
  const folder = join(cache, "helenus", createHash("sha256").update(bytes).digest("hex"));
  const path = join(folder, NAME);
  if (existsSync(path) && statSync(path).size === bytes.length) return path;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const part = join(folder, `part-${randomUUID()}`);
  try {
    writeFileSync(part, bytes);
    chmodSync(part, 0o700);
    renameSync(part, path);
  } finally {
    rmSync(part, { force: true });
  }
  return path;
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function carriedProgram() {
  try {
    return createRequire(import.meta.url)("helenus-server").path;
  } catch {
    return undefined;
  }
}
