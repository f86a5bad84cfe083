"use strict";
// Where the program is. The package of this platform carries it; nothing is downloaded and nothing runs at an install.

const NAME = `${require("./package.json").name}-${process.platform}-${process.arch}`;
const PROGRAM = process.platform === "win32" ? "helenus.exe" : "helenus";

function find() {
  try {
    return require.resolve(`${NAME}/${PROGRAM}`);
  } catch {
    throw new Error(`the package ${NAME} is not installed: there is no program for this platform, or optional dependencies were left out`);
  }
}

/** The path of the program. */
Object.defineProperty(exports, "path", { enumerable: true, get: find });
