/** A real server for the tests: `harness serve`, all roles in one process, embedded NATS, scripted models. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { HarnessClient, type Run, type Update } from "harnessmesh";

/** The binary that test.sh builds or is given. */
export const HARNESS = process.env["HARNESS"] ?? "harness";

export const DONE = "  - {calls: [{name: work_complete, arguments: {summary: finished}}]}\n";
export const TALK = `turns:\n  - {text: I look around first., calls: [{name: list_directory}]}\n${DONE}`;

/** The environment without what would change the meaning of a command. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(HARNESS_|OTEL_|OPENAI_|NODE_TEST)/.test(name)));
}

/** A harness process that can be killed and started again on the same data and address. */
export class Server implements AsyncDisposable {
  address = "127.0.0.1:0";
  readonly #folder = mkdtempSync(join(tmpdir(), "harness-ts-"));
  readonly #more: string[];
  #process: ChildProcess | undefined;
  #files = 0;

  private constructor(more: string[]) {
    this.#more = more;
  }

  static async start(...more: string[]): Promise<Server> {
    const server = new Server(more);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const args = ["serve", "--listen", this.address, "--data", join(this.#folder, "data"), "--takeover", "1s"];
    args.push("--sync", "interval", "--drain", "100ms", "--scripts", tmpdir(), ...this.#more);
    const started = spawn(HARNESS, args, { stdio: ["ignore", "ignore", "pipe"], env: cleanEnvironment() });
    this.#process = started;
    const said: string[] = [];
    const lines = createInterface({ input: started.stderr });
    for await (const line of lines) {
      said.push(line);
      const ready = /ready role=gateway addr=(\S+)/.exec(line);
      if (ready?.[1]) {
        this.address = ready[1];
        started.stderr.resume(); // all that it says later goes by
        return;
      }
    }
    throw new Error(`harness serve ended before it was ready:\n${said.join("\n")}`);
  }

  /** kill -9. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end("SIGTERM");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Writes a scripted model and gives its name. */
  script(turns: string): string {
    const file = this.#new("script.yaml");
    writeFileSync(file, turns);
    return `script:${file}`;
  }

  /** A new folder to work in. */
  workspace(): string {
    const folder = this.#new("workspace");
    mkdirSync(folder);
    return folder;
  }

  /** The key that the gateway requires, for clients that reach it at another address. */
  get key(): string {
    return readFileSync(join(this.#folder, "data", "gateway.key"), "utf8").trim();
  }

  connect(): Promise<HarnessClient> {
    return HarnessClient.connect(this.address);
  }

  #new(name: string): string {
    this.#files += 1;
    return join(this.#folder, `${this.#files}-${name}`);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const ending = this.#process;
    this.#process = undefined;
    if (ending && ending.exitCode === null) {
      const exit = once(ending, "exit");
      ending.kill(signal);
      await exit;
    }
  }
}

/** A way to a server that can be cut off and opened again, at the same address. */
export class Way implements AsyncDisposable {
  address = "127.0.0.1:0";
  /** Connections that are open. */
  readonly open = new Set<Socket>();
  /** Connections that there ever were. */
  made = 0;
  readonly #listener = createServer((from) => {
    this.made += 1;
    this.open.add(from);
    const to = connect(this.port, "127.0.0.1");
    from.on("error", () => undefined).once("close", () => {
      this.open.delete(from);
      to.destroy();
    });
    to.on("error", () => undefined).once("close", () => from.destroy());
    from.pipe(to).pipe(from);
  });

  private constructor(private readonly port: number) {}

  static async to(server: Server): Promise<Way> {
    const way = new Way(portOf(server.address));
    await way.mend();
    return way;
  }

  /** Lets nothing through any more. */
  async cut(): Promise<void> {
    const closed = once(this.#listener, "close");
    this.#listener.close();
    for (const socket of this.open) {
      socket.destroy();
    }
    await closed;
  }

  async mend(): Promise<void> {
    this.#listener.listen(portOf(this.address), "127.0.0.1");
    await once(this.#listener, "listening");
    this.address = `127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#listener.listening) {
      await this.cut();
    }
  }
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

export async function gather<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) {
    all.push(item);
  }
  return all;
}

/** Ids of the events among updates. */
export function ids(updates: readonly Update[]): string[] {
  return updates.flatMap((update) => ("id" in update ? [update.id] : []));
}

/** Ids of all that is stored of a run. */
export async function stored(run: Run): Promise<string[]> {
  return ids(await gather(run.events({ until: "now", deltas: false })));
}
