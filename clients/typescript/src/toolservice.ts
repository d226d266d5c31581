/**
 * Tools of a program for all runs: the server of harness.v1.ToolService, which a tool host calls.
 *
 * A call is identified by its key, which is the `callId` of a tool. A key runs at most once at the same
 * time: a second request for it joins the call that runs, or returns its result while the service keeps
 * it. With a folder as memory, keys and results outlive the process, and a key that ran is never run again.
 */

import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { createSecureServer, createServer, type Http2Server, type SecureServerOptions, type ServerHttp2Session } from "node:http2";
import { join } from "node:path";
import { invalid } from "./errors.js";
import * as pb from "./gen/pb.js";
import { byName, runTool, type Tool } from "./tools.js";

const KEPT = 1000; // results that are kept in memory
const PAGE = 200; // tools of a page
const LARGEST = (16 << 20) - 16; // bytes of a result: a message of 16 MiB has it and its tag
const TIMEOUT = 120_000; // time of a call whose request has none, in milliseconds

/** A tool, with what only a tool service declares. */
export type ServiceTool = Tool & {
  /** What it says of its effects in addition to `reads` and `writes`. */
  readonly hints?: Pick<MessageInitShape<typeof pb.ToolServiceHintsSchema>, "destructive" | "idempotent" | "parallelSafe" | "explores">;
};

export interface ToolServiceOptions {
  tools: readonly ServiceTool[];
  /** Folder in which keys and results outlive the process, for one process at a time. */
  memory?: string;
}

export interface ServeOptions extends ToolServiceOptions {
  /** HOST:PORT; port 0 is any free one. Default 127.0.0.1:9000. */
  address?: string;
  /** Key and certificate of TLS, which an address that is not on loopback needs. */
  tls?: SecureServerOptions;
}

/** A service that is served. */
export interface Served extends AsyncDisposable {
  /** HOST:PORT. */
  readonly address: string;
  /** Cancels the calls that run and closes the server. */
  close(): Promise<void>;
}

interface Call {
  /** Undefined: it was cancelled before it ran. */
  readonly end?: Promise<pb.ToolServiceResult>;
  readonly abort: AbortController;
  readonly listeners: Set<(text: string) => void>;
  ended: boolean;
}

/** Serves tools over gRPC. */
export async function serveTools(options: ServeOptions): Promise<Served> {
  const service = new Service(options);
  const handler = connectNodeAdapter({ routes: (router) => service.routes(router), readMaxBytes: 16 << 20, writeMaxBytes: 16 << 20 });
  const server: Http2Server = options.tls === undefined ? createServer(handler) : createSecureServer(options.tls, handler);
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  const address = options.address ?? "127.0.0.1:9000";
  const [, host, port] = /^(.*):(\d+)$/.exec(address) ?? [];
  if (host === undefined || port === undefined) {
    throw invalid("address", `${JSON.stringify(address)}: expected HOST:PORT`);
  }
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(Number(port), host.replace(/^\[(.*)\]$/, "$1"), resolve);
  });
  const at = server.address();
  const close = async (): Promise<void> => {
    await service.close();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const session of sessions) {
      session.close();
    }
    await closed;
  };
  return { address: `${host}:${at !== null && typeof at === "object" ? at.port : port}`, close, [Symbol.asyncDispose]: close };
}

class Service {
  readonly #tools: ReadonlyMap<string, ServiceTool>;
  readonly #memory: Memory | undefined;
  readonly #calls = new Map<string, Call>();
  readonly #ended: string[] = [];

  constructor({ tools, memory }: ToolServiceOptions) {
    this.#tools = byName(tools) as ReadonlyMap<string, ServiceTool>;
    this.#memory = memory === undefined ? undefined : new Memory(memory);
  }

  routes(router: ConnectRouter): void {
    router.service(pb.ToolService, {
      describe: (request) => this.#describe(request.pageToken),
      execute: (request, context) => this.#execute(request, context.signal),
      cancel: async (request) => this.#cancel(request.key),
    });
  }

  async close(): Promise<void> {
    const running = [...this.#calls.values()].filter((call) => !call.ended);
    for (const call of running) {
      call.abort.abort(new Error("the service closes"));
    }
    await Promise.all(running.map((call) => call.end));
  }

  #describe(token: string): MessageInitShape<typeof pb.ToolServiceDescribeResponseSchema> {
    const from = Number(token || "0") || 0;
    const tools = [...this.#tools.values()];
    return {
      tools: tools.slice(from, from + PAGE).map(({ name, description, parameters, reads, writes, hints }) => ({
        name,
        description,
        parametersSchema: JSON.stringify(parameters),
        hints: { readOnly: reads && !writes, ...hints },
      })),
      remembersKeys: this.#memory !== undefined,
      nextPageToken: from + PAGE < tools.length ? String(from + PAGE) : "",
    };
  }

  async *#execute(
    request: pb.ToolServiceExecuteRequest,
    signal: AbortSignal,
  ): AsyncGenerator<MessageInitShape<typeof pb.ToolServiceExecuteResponseSchema>> {
    let call = this.#calls.get(request.key);
    if (call === undefined) {
      const tool = this.#tools.get(request.tool);
      if (tool === undefined) {
        throw new ConnectError(`there is no tool ${JSON.stringify(request.tool)}`, Code.NotFound);
      }
      call = this.#start(tool, request);
    }
    if (call.end === undefined) {
      throw new ConnectError("the call was cancelled before it ran", Code.FailedPrecondition);
    }
    const texts: string[] = [];
    let wake = (): void => {};
    const listener = (text: string): void => {
      if (texts.length < 64) { // a slow stream misses it
        texts.push(text);
      }
      wake();
    };
    call.listeners.add(listener);
    try {
      for (;;) {
        const next = new Promise<undefined>((resolve) => (wake = () => resolve(undefined)));
        for (let text = texts.shift(); text !== undefined; text = texts.shift()) {
          yield { value: { case: "output", value: text } };
        }
        const result = await Promise.race([call.end, next]);
        if (result !== undefined && texts.length === 0) {
          yield { value: { case: "result", value: result } };
          return;
        }
        signal.throwIfAborted();
      }
    } finally {
      call.listeners.delete(listener);
    }
  }

  async #cancel(key: string): Promise<MessageInitShape<typeof pb.ToolServiceCancelResponseSchema>> {
    const call = this.#calls.get(key);
    if (call === undefined) {
      this.#calls.set(key, { abort: new AbortController(), listeners: new Set(), ended: true });
      this.#keep(key);
    } else if (!call.ended) {
      call.abort.abort(new Error("the call was cancelled"));
      await call.end; // a tool that does not obey its signal: the tool host does not wait for it
    }
    return {};
  }

  #start(tool: ServiceTool, request: pb.ToolServiceExecuteRequest): Call {
    const abort = new AbortController();
    const listeners = new Set<(text: string) => void>();
    const seconds = request.timeout === undefined ? TIMEOUT : Number(request.timeout.seconds) * 1000 + request.timeout.nanos / 1e6;
    const timer = setTimeout(() => abort.abort(new Error("the call took too long")), Math.min(seconds, 2 ** 31 - 1));
    const end = this.#run(tool, request, abort.signal, (text) => {
      for (const listener of listeners) {
        listener(text);
      }
    }).finally(() => {
      clearTimeout(timer);
      call.ended = true;
      this.#keep(request.key);
    });
    const call: Call = { end, abort, listeners, ended: false };
    this.#calls.set(request.key, call);
    return call;
  }

  #keep(key: string): void {
    this.#ended.push(key);
    while (this.#ended.length > KEPT) {
      this.#calls.delete(this.#ended.shift() ?? "");
    }
  }

  async #run(tool: ServiceTool, request: pb.ToolServiceExecuteRequest, signal: AbortSignal, show: (text: string) => void): Promise<pb.ToolServiceResult> {
    await Promise.resolve(); // the stream of the request listens before the tool shows anything
    let known: { result?: pb.ToolServiceResult; begun: boolean } = { begun: false };
    try {
      known = this.#memory?.begin(request.key) ?? known;
    } catch (error) {
      return create(pb.ToolServiceResultSchema, { text: `The call did not run: ${String(error)}`, isError: true });
    }
    if (known.result !== undefined) {
      return known.result;
    }
    if (known.begun && tool.hints?.idempotent !== true) {
      return create(pb.ToolServiceResultSchema, { unknown: true });
    }
    const { text, failed } = await runTool(tool, parse(request.arguments), { callId: request.key, signal, show });
    const result = sendable(create(pb.ToolServiceResultSchema, failed && signal.aborted ? { unknown: true } : { text, isError: failed }));
    this.#memory?.end(request.key, result);
    return result;
  }
}

/** Returns a result, or the error of one that is too large to be sent. */
function sendable(result: pb.ToolServiceResult): pb.ToolServiceResult {
  const size = toBinary(pb.ToolServiceResultSchema, result).length;
  if (size <= LARGEST) {
    return result;
  }
  const text = `The call has run, but its result cannot be read: it has ${size} bytes; at most ${LARGEST} are allowed. Ask for less at a time.`;
  return create(pb.ToolServiceResultSchema, { text, isError: true });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return text;
  }
}

/** Keys and results in a folder. You may delete its files a day after the call has ended. */
class Memory {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Stores that a call begins. Returns the result of an earlier one, and whether one began without an end. */
  begin(key: string): { result?: pb.ToolServiceResult; begun: boolean } {
    if (!/^[0-9a-f]{1,128}$/.test(key)) {
      throw invalid("key", `${JSON.stringify(key)}: expected hexadecimal digits`);
    }
    try {
      return { result: fromBinary(pb.ToolServiceResultSchema, readFileSync(this.#path(key, "result"))), begun: false };
    } catch (error) {
      if (codeOf(error) !== "ENOENT") {
        throw error;
      }
    }
    try {
      this.#write(key, "begun", new Uint8Array(), "wx");
    } catch (error) {
      if (codeOf(error) !== "EEXIST") {
        throw error;
      }
      return { begun: true };
    }
    return { begun: false };
  }

  /** Stores the result of a call. */
  end(key: string, result: pb.ToolServiceResult): void {
    this.#write(key, "new", toBinary(pb.ToolServiceResultSchema, result), "w");
    renameSync(this.#path(key, "new"), this.#path(key, "result"));
    this.#sync();
  }

  #write(key: string, kind: string, data: Uint8Array, flag: "w" | "wx"): void {
    const file = openSync(this.#path(key, kind), flag, 0o600);
    try {
      for (let done = 0; done < data.length; ) {
        done += writeSync(file, data, done);
      }
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    this.#sync();
  }

  #sync(): void {
    const folder = openSync(this.#folder, "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }

  #path(key: string, kind: string): string {
    return join(this.#folder, `${key}.${kind}`);
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
