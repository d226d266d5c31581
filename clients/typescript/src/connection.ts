/** The connection to a gateway: address, TLS, token, trace context, and calls with retries. */

import { readFileSync } from "node:fs";
import { connect as connectSocket, isIPv4 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { SecureClientSessionOptions } from "node:http2";
import { type CallOptions, type Client, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { fromRpc, invalid, isForeign, isPassing } from "./errors.js";
import { GatewayService } from "./gen/harness/v1/gateway_pb.js";
import { noted } from "./keys.js";
import { Session } from "./session.js";

/** Limit of one attempt of a call, in milliseconds. */
const ATTEMPT = 30_000;

export interface ConnectionOptions {
  token?: string | undefined;
  tls: boolean | string;
  traceparent?: string | (() => string | undefined) | undefined;
  patience: number;
}

export interface Call {
  signal?: AbortSignal | undefined;
  patience?: number;
  traceparent?: string | undefined;
}

/** A connection to one gateway, with the headers and the retries of its calls. */
export class Connection {
  /** Every call of the protocol. Sends token and trace context. */
  readonly rpc: Client<typeof GatewayService>;
  /** Milliseconds for which the gateway may be out of reach before a call fails. */
  readonly patience: number;
  /** Whether the gateway has answered a call. */
  answered = false;
  readonly #session: Session;

  constructor(
    readonly address: string,
    options: ConnectionOptions,
  ) {
    checkAddress(address);
    checkToken(address, options);
    checkTrace(present(options.traceparent)); // a wrong one fails here, not at the first call
    this.patience = options.patience;
    const key = new Key(address, options);
    const unix = address.startsWith("unix:");
    const baseUrl = `${options.tls === false ? "http" : "https"}://${unix ? "localhost" : key.address}`;
    const nodeOptions: SecureClientSessionOptions = {};
    if (unix) {
      nodeOptions.createConnection = () => connectSocket(address.slice("unix:".length));
    }
    if (typeof options.tls === "string") {
      nodeOptions.ca = certificates(options.tls);
    }
    this.#session = new Session(baseUrl, nodeOptions);
    const interceptors = [headers(options, key)];
    this.rpc = createClient(GatewayService, createGrpcTransport({ baseUrl, interceptors, sessionManager: this.#session }));
  }

  /**
   * Makes a call and retries it while the gateway is out of reach. Every request that changes
   * something carries an id, so that it has one effect.
   */
  async call<T>(make: (rpc: Client<typeof GatewayService>, options: CallOptions) => Promise<T>, call: Call = {}): Promise<T> {
    const retry = new Retry(call.patience ?? this.patience);
    const options: CallOptions = { timeoutMs: ATTEMPT };
    if (call.signal) {
      options.signal = call.signal;
    }
    if (call.traceparent !== undefined) {
      options.headers = { traceparent: checkTrace(call.traceparent) };
    }
    for (;;) {
      call.signal?.throwIfAborted();
      try {
        const result = await make(this.rpc, options);
        this.answered = true;
        return result;
      } catch (error) {
        await this.waitForRetry(error, retry, call.signal);
      }
    }
  }

  /** Waits until a failed call may be retried. Throws if it may not, as after `close`, or the signal's reason. */
  async waitForRetry(error: unknown, retry: Retry, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (!(error instanceof ConnectError)) {
      throw error;
    }
    const { closed } = this.#session;
    closed.throwIfAborted();
    // A proxy that has lost its gateway may know no such path; where no gateway has answered yet, that is another server.
    const passing = isPassing(error) || (this.answered && isForeign(error));
    if (!passing || !(await retry.wait(signal ? AbortSignal.any([signal, closed]) : closed))) {
      throw fromRpc(error, this.address);
    }
  }

  /** Ends all calls, and fails each later one, with an error of code CANCELLED. */
  close(): void {
    this.#session.abort();
  }
}

/** Paces the attempts of a call: with growing pauses, for `patience` milliseconds since the last success. */
export class Retry {
  #end: number | undefined;
  #pause = 100;

  constructor(readonly patience: number) {}

  /** Records a success. */
  reset(): void {
    this.#end = undefined;
    this.#pause = 100;
  }

  /** Waits until the next attempt is due. Returns false, without waiting, when patience has run out. */
  async wait(signal?: AbortSignal): Promise<boolean> {
    const now = performance.now();
    this.#end ??= now + this.patience;
    if (now >= this.#end) {
      return false;
    }
    const pause = this.#pause * (0.8 + 0.4 * Math.random());
    this.#pause = Math.min(this.#pause * 2, 2_000);
    try {
      await sleep(Math.min(pause, this.#end - now), undefined, signal ? { signal } : {});
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
    return true;
  }
}

/** Throws unless an address is HOST:PORT or unix:PATH. */
export function checkAddress(address: string): void {
  const port = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(address)?.[1];
  if (!/^unix:.+/.test(address) && !(Number(port) > 0 && Number(port) < 65_536)) {
    throw invalid("address", `${JSON.stringify(address)} is neither HOST:PORT, such as 127.0.0.1:7447, nor unix:PATH`);
  }
}

/** Reports whether requests to an address stay on this machine. */
export function isLocal(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(":"));
  return address.startsWith("unix:") || host === "localhost" || host === "[::1]" || (isIPv4(host) && host.startsWith("127."));
}

function checkToken(address: string, { token, tls }: ConnectionOptions): void {
  if (tls !== false && address.startsWith("unix:")) {
    throw invalid("tls", `${address} is a socket of this machine, which has no TLS; omit tls`);
  }
  if (token === undefined) {
    return;
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw invalid("token", "must be one word of visible ASCII characters, without `Bearer` in front");
  }
  if (tls === false && !isLocal(address)) {
    throw invalid("token", `it would travel to ${address} in clear text; pass tls: true or tls: CA_FILE`);
  }
}

function checkTrace(traceparent: string | undefined): string {
  if (traceparent && !/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent)) {
    throw invalid(
      "traceparent",
      `${JSON.stringify(traceparent)} is not VERSION-TRACE-SPAN-FLAGS in hexadecimal, the form of W3C`,
    );
  }
  return traceparent ?? "";
}

function present(traceparent: ConnectionOptions["traceparent"]): string | undefined {
  return typeof traceparent === "function" ? traceparent() : traceparent;
}

/** The token of the options, or the key that a gateway on this machine has noted. */
class Key {
  /** Where to connect. */
  readonly address: string;
  #token: string | undefined;
  readonly #finds: boolean;

  constructor(address: string, { token, tls }: ConnectionOptions) {
    this.address = address;
    this.#token = token;
    this.#finds = token === undefined && isLocal(address) && !address.startsWith("localhost:");
    if (token === undefined && isLocal(address)) {
      const found = noted(address);
      this.#token = found?.key;
      this.address = found && tls === false ? found.address : address;
    }
  }

  /** Returns the token of a call. A gateway may have been started since the last one; a name is not looked up again. */
  find(): string | undefined {
    if (this.#token === undefined && this.#finds) {
      this.#token = noted(this.address)?.key;
    }
    return this.#token;
  }
}

/** Adds token and trace context to each call; keeps a trace context that the call already has. */
function headers(options: ConnectionOptions, key: Key): Interceptor {
  return (next) => (request) => {
    request.header.set("user-agent", "harnessmesh-typescript");
    const token = key.find();
    if (token !== undefined) {
      request.header.set("authorization", `Bearer ${token}`);
    }
    if (!request.header.get("traceparent")) {
      const trace = checkTrace(present(options.traceparent));
      request.header.delete("traceparent");
      if (trace) {
        request.header.set("traceparent", trace);
      }
    }
    return next(request);
  };
}

function certificates(file: string): Buffer {
  let roots: Buffer;
  try {
    roots = readFileSync(file);
  } catch (error) {
    throw invalid("tls", `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!roots.includes("-----BEGIN CERTIFICATE-----")) {
    throw invalid("tls", `${file} contains no certificate in PEM form`);
  }
  return roots;
}
