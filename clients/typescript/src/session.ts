/**
 * The HTTP/2 connection to a gateway: one at a time, made when there is a call, and made anew for the
 * next call when it broke or the gateway said that it goes away.
 *
 * While there are calls, pings notice a machine that vanished without a word. While there are none,
 * the connection keeps no process alive.
 */

import { once } from "node:events";
import { type ClientHttp2Stream, connect, constants, type OutgoingHttpHeaders, type SecureClientSessionOptions } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";

// The gateway takes a ping every 10 s.
const PING_INTERVAL = 20_000;
const PING_TIMEOUT = 10_000;

/** A session manager of connect-node. */
export class Session {
  readonly authority: string;
  readonly #options: SecureClientSessionOptions;
  #link: Link | undefined;

  constructor(url: string, options: SecureClientSessionOptions) {
    this.authority = new URL(url).origin;
    this.#options = options;
  }

  request(method: string, path: string, headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream> {
    if (!this.#link?.usable) {
      this.#link = new Link(this.authority, this.#options);
    }
    return this.#link.request({ ...headers, ":method": method, ":path": path });
  }

  notifyResponseByteRead(): void {
    // Pings go out whether or not something comes in.
  }

  /** Ends the connection and all that is under way on it. */
  abort(): void {
    this.#link?.abort(new ConnectError("the client was closed", Code.Canceled));
  }
}

/** One connection. */
class Link {
  readonly #http2;
  readonly #connected: Promise<unknown>;
  #streams = 0;
  #pings: NodeJS.Timeout | undefined;

  constructor(authority: string, options: SecureClientSessionOptions) {
    this.#http2 = connect(authority, options);
    this.#connected = once(this.#http2, "connect");
    // Whoever waits for the connection, or has a stream on it, is told there of what goes wrong.
    this.#connected.catch(() => undefined);
    this.#http2.on("error", () => undefined);
    this.#http2.once("close", () => clearInterval(this.#pings));
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
