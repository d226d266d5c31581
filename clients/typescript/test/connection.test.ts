/** TLS, tokens, trace context and addresses, against a gateway that has them. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createSecureServer, createServer as createHttp2Server, type Http2SecureServer, type IncomingHttpHeaders } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, mock, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { HarnessClient } from "harnessmesh";
import { Connection } from "../src/connection.js";
import { noted } from "../src/keys.js";
import { Session } from "../src/session.js";
import { gather, Server, TALK } from "./server.js";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const ALL = "sesame-opens-everything";
const TEAM = "only-for-the-team-a-1234";

const folder = mkdtempSync(join(tmpdir(), "harness-ts-tls-"));
const own = certificate("own");
const other = certificate("other");
let server: Server;

/** A certificate for this machine that is its own authority, made with what comes along with Go. */
function certificate(name: string): { cert: string; key: string } {
  const into = join(folder, name);
  mkdirSync(into);
  const make = join(execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim(), "src/crypto/tls/generate_cert.go");
  const hosts = ["--host", "localhost,127.0.0.1", "--ca", "--ecdsa-curve", "P256"];
  execFileSync("go", ["run", make, ...hosts], { cwd: into, stdio: ["ignore", "ignore", "pipe"] });
  return { cert: join(into, "cert.pem"), key: join(into, "key.pem") };
}

before(async () => {
  const tokens = join(folder, "tokens");
  writeFileSync(tokens, `${ALL}\n${TEAM} team-a\n`);
  server = await Server.start("--tls-cert", own.cert, "--tls-key", own.key, "--tokens", tokens);
});

after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("a run is started and followed over TLS with a token", async () => {
  await using client = await HarnessClient.connect(server.address, { tls: own.cert, token: TEAM, namespace: "team-a" });
  const run = await client.start({ goal: "look", model: server.script(TALK), workspace: server.workspace() });
  const updates = await gather(run.events());
  assert.equal(updates.at(-1)?.name, "result");
  assert.equal(run.namespace, "team-a");
});

test("a missing or wrong token, and a namespace of others, are one clear error each", async () => {
  const tls = own.cert;
  await assert.rejects(HarnessClient.connect(server.address, { tls }), { name: "UnauthenticatedError", reason: "TOKEN_MISSING" });
  await assert.rejects(HarnessClient.connect(server.address, { tls, token: "simsalabim-simsalabim" }), {
    name: "UnauthenticatedError",
    reason: "TOKEN_UNKNOWN",
  });
  await assert.rejects(HarnessClient.connect(server.address, { tls, token: TEAM }), {
    name: "ForbiddenError",
    reason: "NAMESPACE_FORBIDDEN",
  });
});

test("a certificate of somebody else, and TLS at one end only, are one clear error each", async () => {
  const expected = { name: "UnavailableError", message: /is TLS on at both ends or at neither/ };
  const connectTimeout = 300;
  await assert.rejects(HarnessClient.connect(server.address, { tls: other.cert, token: ALL, connectTimeout }), expected);
  await assert.rejects(HarnessClient.connect(server.address, { token: ALL, connectTimeout }), expected);
  await using plain = await Server.start();
  await assert.rejects(HarnessClient.connect(plain.address, { tls: own.cert, connectTimeout }), expected);
});

test("token and trace context stand in the headers of each call", async () => {
  const seen: IncomingHttpHeaders[] = [];
  const front: Http2SecureServer = createSecureServer({ cert: readFileSync(own.cert), key: readFileSync(own.key) });
  front.on("stream", (stream, headers) => {
    seen.push(headers);
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto", "grpc-status": "0" }, { endStream: false });
    stream.end(Buffer.alloc(5)); // an empty message
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const { port } = front.address() as AddressInfo;
  try {
    const traceparent = (): string => TRACE;
    await using client = await HarnessClient.connect(`127.0.0.1:${port}`, { tls: own.cert, token: ALL, traceparent });
    await gather(client.runs());
    const another = TRACE.replace("b7ad6b7169203331", "00f067aa0ba902b7");
    await client.start({ goal: "look", traceparent: another });
    assert.deepEqual(
      seen.map((headers) => [headers.authorization, headers["traceparent"], headers["user-agent"]]),
      [TRACE, TRACE, another].map((trace) => [`Bearer ${ALL}`, trace, "harnessmesh-typescript"]),
    );
  } finally {
    front.close();
  }
});

test("a wrong address is one clear error", async () => {
  await assert.rejects(HarnessClient.connect("127.0.0.1:1", { connectTimeout: 200 }), {
    name: "UnavailableError",
    message: /^no gateway can be reached at 127\.0\.0\.1:1: is `harness serve` running there/,
  });
  for (const address of ["localhost", "http://127.0.0.1:7447", "127.0.0.1:70000", "a?b:80", ""]) {
    await assert.rejects(HarnessClient.connect(address), { name: "InvalidError", field: "address", message: /is neither HOST:PORT/ });
  }
});

test("something else than a gateway is one clear error", async () => {
  const silent = createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as AddressInfo;
  try {
    await assert.rejects(HarnessClient.connect(`127.0.0.1:${port}`, { connectTimeout: 200 }), {
      name: "UnavailableError",
      message: /^no gateway can be reached/,
    });
  } finally {
    silent.close();
  }
});

test("invalid arguments are refused before a request is sent", async () => {
  const refused = (options: Parameters<typeof HarnessClient.connect>[1], message: RegExp, address?: string) =>
    assert.rejects(HarnessClient.connect(address, options), { name: "InvalidError", message });
  await refused({ token: ALL }, /would travel to 192\.0\.2\.1:7447 in clear text/, "192.0.2.1:7447");
  for (const token of ["", `Bearer ${ALL}`, `${ALL}\n`]) {
    await refused({ token }, /^token: must be one word/);
  }
  await refused({ tls: join(folder, "missing.pem") }, /^tls: .*missing\.pem cannot be read: ENOENT/);
  await refused({ tls: join(folder, "tokens") }, /contains no certificate in PEM form/);
  await refused({ traceparent: "trace" }, /^traceparent: "trace" is not VERSION-TRACE-SPAN-FLAGS/);
});

test("a signal ends the wait for a gateway that is away, with its reason", async () => {
  const leaving = new AbortController();
  const connecting = HarnessClient.connect("127.0.0.1:1", { connectTimeout: 60_000, signal: leaving.signal });
  leaving.abort(new Error("enough"));
  await assert.rejects(connecting, { message: "enough" });
});

test("a gateway that vanished without a word is noticed by a ping", async () => {
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]); // an empty frame of them
  const silent = createServer((socket) => socket.resume().write(settings));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as AddressInfo;
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  try {
    const session = new Session(`http://127.0.0.1:${port}`, {});
    const stream = await session.request("POST", "/", {});
    const failed = once(stream, "error");
    mock.timers.tick(20_000);
    mock.timers.tick(10_000);
    assert.match(String(await failed), /the gateway does not respond to pings/);
  } finally {
    mock.timers.reset();
    silent.close();
  }
});

for (const scheme of ["http", "https"]) {
  test(`what takes a connection and never speaks is given up, ${scheme}`, { timeout: 20_000 }, async () => {
    const silent = createServer((socket) => socket.on("error", () => undefined).resume());
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    mock.timers.enable({ apis: ["setTimeout"] });
    const session = new Session(`${scheme}://127.0.0.1:${port}`, {});
    try {
      const taken = once(silent, "connection");
      const failed = assert.rejects(session.request("POST", "/", {}), { code: Code.Unavailable });
      await taken;
      mock.timers.tick(5_000);
      await failed;
    } finally {
      mock.timers.reset();
      session.abort();
      silent.close();
    }
  });
}

test("a session that is closed ends also what is under way on a connection that takes nothing new", { timeout: 20_000 }, async () => {
  const leaving = createHttp2Server();
  leaving.on("stream", (stream) => {
    stream.on("error", () => undefined);
    stream.session?.goaway(0, stream.id);
    stream.respond();
  });
  await new Promise<void>((resolve) => leaving.listen(0, "127.0.0.1", resolve));
  const { port } = leaving.address() as AddressInfo;
  const session = new Session(`http://127.0.0.1:${port}`, {});
  try {
    const streams = [await session.request("POST", "/", {})];
    await once(streams[0]!, "response");
    streams.push(await session.request("POST", "/", {}));
    assert.notEqual(streams[0]!.session, streams[1]!.session);
    const failed = streams.map((stream) => once(stream, "error"));
    session.abort();
    assert.match(String(await Promise.all(failed)), /the client is closed.*the client is closed/);
    await assert.rejects(session.request("POST", "/", {}), { rawMessage: "the client is closed" });
  } finally {
    leaving.close();
  }
});

test("the key of a gateway on this machine is found by its address", async () => {
  await using keyed = await Server.start();
  const port = keyed.address.slice(keyed.address.lastIndexOf(":") + 1);
  for (const address of [keyed.address, `localhost:${port}`]) {
    await using client = await HarnessClient.connect(address);
    assert.deepEqual(await gather(client.runs()), []);
  }
  assert.deepEqual(noted(keyed.address), { address: keyed.address, key: keyed.key });
  const named = { name: "UnauthenticatedError", message: /gateway\.key/ };
  await assert.rejects(HarnessClient.connect(keyed.address, { token: "simsalabim-simsalabim" }), named);
  for (const other of ["127.0.0.1:1", "192.0.2.1:7447", "example.org:7447", "unix:/nowhere"]) {
    assert.equal(noted(other), undefined);
  }
});

test("a note counts only while its gateway exists and while it is private", async () => {
  await using keyed = await Server.start();
  const keys = join(folder, "config", "harness", "keys");
  const text = readFileSync(join(process.env["XDG_CONFIG_HOME"] ?? "", "harness", "keys", keyed.address), "utf8");
  const environment = { XDG_CONFIG_HOME: join(folder, "config") };
  assert.equal(noted(keyed.address, environment), undefined);
  mkdirSync(keys, { recursive: true, mode: 0o700 });
  const note = join(keys, keyed.address);
  const ended = spawnSync("true").pid;
  writeFileSync(note, text.replace(/\n\d+\n$/, `\n${ended}\n`), { mode: 0o600 });
  assert.equal(noted(keyed.address, environment), undefined);
  writeFileSync(note, text);
  assert.equal(noted(keyed.address, environment)?.key, keyed.key);
  chmodSync(note, 0o644);
  assert.throws(() => noted(keyed.address, environment), { name: "InvalidError", message: /chmod 600/ });
  chmodSync(note, 0o600);
  chmodSync(keys, 0o755);
  assert.throws(() => noted(keyed.address, environment), { name: "InvalidError", message: /chmod 700/ });
  chmodSync(keys, 0o700);
  for (const damaged of ["", "key\n1\n", `${text}\n`, text.replace("gateway.key", "key")]) {
    writeFileSync(note, damaged);
    assert.throws(() => noted(keyed.address, environment), { name: "InvalidError" }, damaged);
  }
});

test("a 404 of something between is retried once the gateway has answered", async () => {
  let calls = 0;
  const between = createHttp2Server((_, response) => {
    calls++;
    response.writeHead(404).end();
  });
  between.listen(0, "127.0.0.1");
  await once(between, "listening");
  const connection = new Connection(`127.0.0.1:${(between.address() as AddressInfo).port}`, { patience: 300, tls: false });
  try {
    const read = () => connection.call((rpc, options) => rpc.getRun({ runId: "r" }, options));
    await assert.rejects(read(), { code: "UNIMPLEMENTED" });
    assert.equal(calls, 1);
    connection.answered = true;
    await assert.rejects(read(), { code: "UNIMPLEMENTED" });
    assert.ok(calls > 2, `${calls} calls`);
  } finally {
    connection.close();
    between.close();
  }
});
