/**
 * The HTTP/2 connection to a gateway: one at a time, opened by a call, and reopened by the next call
 * after it broke or the gateway announced its shutdown.
 *
 * A connection counts as open when the gateway's first frame has arrived, within 5 seconds. While there
 * are calls, pings detect a machine that vanished. While there are none, the connection keeps no process
 * alive.
 */

import { type ClientHttp2Stream, connect, constants, type OutgoingHttpHeaders, type SecureClientSessionOptions } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { HarnessError } from "./errors.js";

// The gateway accepts a ping every 10 s.
const PING_INTERVAL = 20_000;
const PING_TIMEOUT = 10_000;
// For name resolution, socket, TLS and the first frame together.
const CONNECT_TIMEOUT = 5_000;
const CLOSED = "the client is closed";

/** A session manager of connect-node. */
export class Session {
  readonly authority: string;
  readonly #options: SecureClientSessionOptions;
  readonly #closing = new AbortController();
  /** All open links: the newest, and older ones whose streams have not ended. */
  readonly #links = new Set<Link>();
  #link: Link | undefined;

  constructor(url: string, options: SecureClientSessionOptions) {
    this.authority = new URL(url).origin;
    this.#options = options;
  }

  /** Aborts, with an error of code CANCELLED, when the session is closed. */
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
    // Pings are sent whether or not data arrives.
  }

  /** Ends every connection with its streams; each later request fails. */
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
    const silent = new ConnectError("the server does not speak HTTP/2", Code.Unavailable);
    const late = setTimeout(() => this.abort(silent), CONNECT_TIMEOUT);
    // A server sends its settings first. An open socket alone does not prove that a server reads it.
    this.#connected = new Promise((resolve, reject) => {
      http2.once("remoteSettings", () => resolve());
      http2.on("error", reject);
      http2.once("close", () => reject(silent));
    });
    // A request that waits for the connection, or a stream on it, receives the error there.
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
    const silent = new ConnectError("the gateway does not respond to pings", Code.Unavailable);
    const late = setTimeout(() => this.abort(silent), PING_TIMEOUT).unref();
    this.#http2.ping(() => clearTimeout(late));
  }
}
