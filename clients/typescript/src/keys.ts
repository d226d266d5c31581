/**
 * The key that a gateway on this machine requires of clients, found by its address.
 *
 * A gateway notes the path of its key file in a folder of its user. A note counts only while the
 * process of the gateway exists: after that another user may listen at the address.
 */

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from "node:fs";
import { isIPv4 } from "node:net";
import { isAbsolute, join, resolve } from "node:path";
import { invalid } from "./errors.js";

/** The key of a gateway. */
export interface Noted {
  /** Where to connect without TLS. A name such as localhost may lead to another process. */
  address: string;
  key: string;
}

/** The largest note and key file, in bytes. */
const LARGEST = 4096;

/**
 * Returns the key that a gateway of this user has noted for an address of this machine, if any.
 *
 * @throws InvalidError for a note or a key file that is damaged or that other users can access.
 */
export function noted(address: string, environment: NodeJS.ProcessEnv = process.env): Noted | undefined {
  const folder = notesFolder(environment);
  if (folder === undefined) {
    return undefined;
  }
  for (const name of candidates(address)) {
    let key: string | undefined;
    try {
      key = readNote(folder, name);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw invalid("token", `the key of the gateway at ${address} cannot be used: ${why}; or pass token`);
    }
    if (key !== undefined) {
      return { address: name, key };
    }
  }
  return undefined;
}

function notesFolder(environment: NodeJS.ProcessEnv): string | undefined {
  const { XDG_CONFIG_HOME: config = "", HOME: home = "" } = environment;
  if (process.geteuid === undefined) {
    return undefined; // Windows
  }
  if (isAbsolute(config)) {
    return join(config, "harness", "keys");
  }
  return isAbsolute(home) ? join(home, ".config", "harness", "keys") : undefined;
}

/** Returns the addresses of notes that an address may mean. One of another machine has none. */
function candidates(address: string): string[] {
  if (address.startsWith("unix:")) {
    return [`unix:${resolve(address.slice("unix:".length).replace(/^\/\/(?=\/)/, ""))}`];
  }
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).toLowerCase();
  const port = Number(address.slice(colon + 1));
  if (host === "localhost") {
    return [`127.0.0.1:${port}`, `[::1]:${port}`];
  }
  if (isIPv4(host)) {
    return host.startsWith("127.") ? [`${host}:${port}`] : [];
  }
  return host.startsWith("[") && URL.canParse(`http://${host}/`) && new URL(`http://${host}/`).hostname === "[::1]" ? [`[::1]:${port}`] : [];
}

/** Returns the key of a note; undefined if there is no note, or if its process has ended. */
function readNote(folder: string, name: string): string | undefined {
  let note: string;
  try {
    const info = lstatSync(folder);
    check(folder, info, info.isDirectory(), "700");
    note = readOwn(join(folder, name.replaceAll("%", "%25").replaceAll("/", "%2F")));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      return undefined;
    }
    throw error;
  }
  const [file = "", pid = "", end, more] = note.split("\n");
  if (!isAbsolute(file) || !/^[1-9]\d*$/.test(pid) || end !== "" || more !== undefined) {
    throw new Error(`its note in ${folder} is damaged; remove it, and restart the gateway`);
  }
  try {
    process.kill(Number(pid), 0);
  } catch {
    return undefined;
  }
  const key = readOwn(file).trim();
  if (!/^harness-key-[0-9a-f]{64}$/.test(key)) {
    throw new Error(`${file} has no key; remove it, and restart the gateway`);
  }
  return key;
}

function readOwn(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const info = fstatSync(file);
    check(path, info, info.isFile(), "600");
    const bytes = Buffer.alloc(LARGEST);
    return bytes.toString("utf8", 0, readSync(file, bytes));
  } finally {
    closeSync(file);
  }
}

function check(path: string, info: Stats, isKind: boolean, mode: string): void {
  if (!isKind) {
    throw new Error(`${path} is not a regular file or folder`);
  }
  if (info.uid !== process.geteuid?.()) {
    throw new Error(`${path} belongs to another user`);
  }
  if (info.mode & 0o077) {
    throw new Error(`${path} is accessible to other users: chmod ${mode} it`);
  }
}
