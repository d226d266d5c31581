/**
 * The HTTP/2 connection to a gateway: one at a time, made when there is a call, and made anew for the
 * next call when it broke or the gateway said that it goes away.
 *
 * A connection is there once the gateway speaks; it has a few seconds for that. While there are calls,
 * pings notice a machine that vanished without a word. While there are none, the connection keeps no
 * process alive.
 */

import { type ClientHttp2Stream, connect, constants, type OutgoingHttpHeaders, type SecureClientSessionOptions } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { HarnessError } from "./errors.js";

// The gateway takes a ping every 10 s.
const PING_INTERVAL = 20_000;
const PING_TIMEOUT = 10_000;
// For name, socket, TLS and the first frame together.
const CONNECT_TIMEOUT = 5_000;
const CLOSED = "the client is closed";

/** A session manager of connect-node. */
export class Session {
  readonly authority: string;
  readonly #options: SecureClientSessionOptions;
  readonly #closing = new AbortController();
  /** All that are open: the newest, and those that only end what is under way on them. */
  readonly #links = new Set<Link>();
  #link: Link | undefined;

  constructor(url: string, options: SecureClientSessionOptions) {
    this.authority = new URL(url).origin;
    this.#options = options;
  }

  /** Aborts, with an error that says so, when the session is closed for good. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  async request(method: string, path: string, headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream> {
    if (this.closed.aborted) {
      throw new ConnectError(CLOSED, Code.Canceled);
    }
    if (!this.#link?.usable) {
      const link: Link = new Link(this.authority, this.#options, () => this.#links.delete(link));
      this.#links.add(link);
      this.#link = link;
    }
    return this.#link.request({ ...headers, ":method": method, ":path": path });
  }

  notifyResponseByteRead(): void {
    // Pings go out whether or not something comes in.
  }

  /** Ends every connection and all that is under way; each request from now on fails. */
  abort(): void {
    this.#closing.abort(new HarnessError(CLOSED, { code: "CANCELLED" }));
    for (const link of this.#links) {
      link.abort(new ConnectError(CLOSED, Code.Canceled));
    }
  }
}

/** One connection. */
class Link {
  readonly #http2;
  readonly #connected: Promise<void>;
  #streams = 0;
  #pings: NodeJS.Timeout | undefined;

  constructor(authority: string, options: SecureClientSessionOptions, ended: () => void) {
    const http2 = connect(authority, options);
    this.#http2 = http2;
    const silent = new ConnectError("nothing there speaks HTTP/2", Code.Unavailable);
    const late = setTimeout(() => this.abort(silent), CONNECT_TIMEOUT);
    // The settings are what a server says first. A socket alone may be one that nobody listens to.
    this.#connected = new Promise((resolve, reject) => {
      http2.once("remoteSettings", () => resolve());
      http2.on("error", reject);
      http2.once("close", () => reject(silent));
    });
    // Whoever waits for the connection, or has a stream on it, is told there of what goes wrong.
    this.#connected.catch(() => undefined);
    http2.once("remoteSettings", () => clearTimeout(late));
    http2.once("close", () => {
      clearTimeout(late);
      clearInterval(this.#pings);
      ended();
    });
  }

  get usable(): boolean {
    return !this.#http2.closed && !this.#http2.destroyed;
  }

  async request(headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream> {
    await this.#connected;
    const stream = this.#http2.request(headers);
    if (this.#streams++ === 0) {
      this.#http2.ref();
      this.#pings = setInterval(() => this.#ping(), PING_INTERVAL).unref();
    }
    stream.once("close", () => {
      if (--this.#streams === 0) {
        this.#http2.unref();
        clearInterval(this.#pings);
      }
    });
    return stream;
  }

  abort(reason: Error): void {
    this.#http2.destroy(reason, constants.NGHTTP2_CANCEL);
  }

  #ping(): void {
    if (this.#http2.destroyed) {
      return;
    }
    const silent = new ConnectError("the gateway answers no ping", Code.Unavailable);
    const late = setTimeout(() => this.abort(silent), PING_TIMEOUT).unref();
    this.#http2.ping(() => clearTimeout(late));
  }
}
