/** The way in: connect to a gateway, start runs, find them again. */

import { resolve } from "node:path";
import type { Client } from "@connectrpc/connect";
import { Connection } from "./connection.js";
import { invalid } from "./errors.js";
import type { Status } from "./events.js";
import * as pb from "./gen/pb.js";
import { type Init, message, newId } from "./messages.js";
import { Run, type Signal } from "./run.js";
import { byName, specOf, type Tool } from "./tools.js";

export interface ConnectOptions extends Signal {
  /**
   * A bearer token. Beyond this machine it travels with TLS only. Default: the key that a gateway of
   * this user has noted for an address on this machine.
   */
  token?: string | undefined;
  /** True to trust the certificate authorities that Node trusts, or a PEM file with those to trust. Default false. */
  tls?: boolean | string | undefined;
  /** The namespace of runs where a call names no other. Default "default". */
  namespace?: string | undefined;
  /** W3C trace context that is sent with each call, or a function that returns the current one. */
  traceparent?: string | (() => string | undefined) | undefined;
  /**
   * Milliseconds for which the gateway may be out of reach before a call or an iteration fails. Default
   * 60,000. Independent of it, each attempt has 5 s to connect and 30 s in total.
   */
  patience?: number | undefined;
  /** The same for the first call. Default 5,000. */
  connectTimeout?: number | undefined;
}

export interface StartOptions extends Signal {
  /** The task of the agent, as text. */
  goal: string;
  /** The fields of an agent file. */
  agent?: Init<typeof pb.AgentSpecSchema>;
  /** PROVIDER:NAME; takes precedence over the model of the agent. */
  model?: string | undefined;
  /** The folder that the agent works in, on the machine of the tool host. A relative one, as the default ".", is taken from the current folder. */
  workspace?: string | undefined;
  /** Functions that the run may call in this process, while `events` is iterated or `result` awaited. */
  tools?: readonly Tool[];
  /** The outputs that must exist before the run counts as done. */
  contract?: Init<typeof pb.TaskContractSchema>;
  /** JSON Schema of the result, as an object or as JSON text; `output` of the result is then JSON that fits it. */
  outputSchema?: string | object | undefined;
  /** Numbers of the loop, such as `{ stop: { maxTurns: 20 } }`. */
  config?: Init<typeof pb.LoopConfigSchema>;
  workflow?: string[];
  /** The run's name. Default: derived from the request id. */
  runId?: string;
  /** The same request sent again, also by another process, starts no second run. Default: a new one. */
  requestId?: string;
  namespace?: string;
  /** W3C trace context of this run; takes precedence over that of the client. */
  traceparent?: string;
}

export interface AttachOptions extends Signal {
  /**
   * Functions for the client tools that the run was started with. Calls that are waiting already are
   * made too, as soon as `events` is iterated or `result` awaited.
   */
  tools?: readonly Tool[];
  namespace?: string;
}

export interface RunsOptions extends Signal {
  /** Only runs with these statuses; default all. */
  statuses?: readonly Status[];
  /** "*" means all. */
  namespace?: string;
  /** Runs in one request, from 1 to 1,000. Default 100. */
  pageSize?: number;
}

/** A connection to a gateway, made by {@link HarnessClient.connect}. Any number of runs may share it. */
export class HarnessClient implements AsyncDisposable {
  private constructor(
    private readonly connection: Connection,
    readonly namespace: string,
  ) {}

  /**
   * Connects to the gateway of a mesh.
   *
   * @param address HOST:PORT or unix:PATH
   * @throws InvalidError for arguments that do not fit together, UnavailableError when no gateway
   * answers, UnauthenticatedError and ForbiddenError for a token that is missing, unknown or not for
   * this namespace.
   */
  static async connect(address = "127.0.0.1:7447", options: ConnectOptions = {}): Promise<HarnessClient> {
    const { namespace = "default", patience = 60_000, connectTimeout = 5_000, tls = false, token, traceparent } = options;
    const connection = new Connection(address, { token, tls, traceparent, patience });
    try {
      // A cheap call checks address, TLS, token and namespace.
      const { signal } = options;
      await connection.call((rpc, call) => rpc.listRuns({ namespace, pageSize: 1 }, call), { patience: connectTimeout, signal });
    } catch (error) {
      connection.close();
      throw error;
    }
    return new HarnessClient(connection, namespace);
  }

  /** Every call of the protocol, with types, for calls without a method here. Sends token and trace context. */
  get rpc(): Client<typeof pb.GatewayService> {
    return this.connection.rpc;
  }

  /**
   * Starts a run. When this returns the run is stored and continues, also when this process ends.
   *
   * @throws InvalidError with the field that is wrong, ExistsError when another run has the name,
   * PreconditionError when an executor of the workflow is not served.
   */
  async start(options: StartOptions): Promise<Run> {
    const tools = byName(options.tools ?? []);
    const { config, contract, outputSchema } = options;
    const agent = message(pb.AgentSpecSchema, "agent", options.agent ?? {});
    const spec = message(pb.RunSpecSchema, "spec", {
      goal: { value: { case: "inline", value: options.goal } },
      agent: { ...agent, model: options.model ?? agent.model },
      workspace: resolve(options.workspace ?? "."),
      workflow: options.workflow ?? [],
      clientTools: [...tools.values()].map(specOf),
      ...(config && { config: message(pb.LoopConfigSchema, "config", config) }),
      ...(contract && { contract: message(pb.TaskContractSchema, "contract", contract) }),
      ...(outputSchema !== undefined && { outputSchema: typeof outputSchema === "string" ? outputSchema : JSON.stringify(outputSchema) }),
    });
    const request = message(pb.StartRunRequestSchema, "start", {
      namespace: options.namespace ?? this.namespace,
      runId: options.runId ?? "",
      requestId: options.requestId ?? newId(),
      spec,
    });
    const answer = await this.connection.call((rpc, call) => rpc.startRun(request, call), options);
    return new Run(this.connection, answer.namespace, answer.runId, answer.existed, tools);
  }

  /**
   * Attaches to an existing run, which any client may have started.
   *
   * @throws NotFoundError when there is none.
   */
  async attach(runId: string, options: AttachOptions = {}): Promise<Run> {
    const tools = byName(options.tools ?? []);
    const run = new Run(this.connection, options.namespace ?? this.namespace, runId, true, tools);
    await run.info(options);
    return run;
  }

  /** Yields runs, newest first. */
  async *runs(options: RunsOptions = {}): AsyncGenerator<pb.Run, void, undefined> {
    const { namespace = this.namespace, pageSize = 100 } = options;
    const statuses = (options.statuses ?? []).map(statusNumber);
    let pageToken = "";
    do {
      const request = message(pb.ListRunsRequestSchema, "runs", { namespace, statuses, pageSize, pageToken });
      const page = await this.connection.call((rpc, call) => rpc.listRuns(request, call), options);
      yield* page.runs;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /**
   * Closes the connection. Runs continue. Calls that have not returned, and all later ones, fail with
   * a HarnessError of code CANCELLED.
   */
  async close(): Promise<void> {
    this.connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const STATUSES = Object.keys(pb.RunStatus).filter((name) => /^[A-Z]+$/.test(name) && name !== "UNSPECIFIED");

function statusNumber(status: Status): pb.RunStatus {
  if (!STATUSES.includes(status)) {
    throw invalid("statuses", `${JSON.stringify(status)} is not one of ${STATUSES.join(", ")}`);
  }
  return pb.RunStatus[status];
}
