/** Tools that the client runs: functions that a run may call. */

import { type MessageInitShape } from "@bufbuild/protobuf";
import { invalid } from "./errors.js";
import * as pb from "./gen/pb.js";

/** JSON Schema of a value. Types are made from the keywords below; others are passed on unchanged. */
export type Schema = { readonly [keyword: string]: unknown };

/** JSON Schema of a tool's arguments. */
export type Parameters = Schema & {
  readonly type: "object";
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
};

/** The type of the values that a schema describes; `unknown` where it is too loose or too complex for a type. */
export type FromSchema<S> = S extends { const: infer Value }
  ? Value
  : S extends { enum: readonly (infer Value)[] }
    ? Value
    : S extends { type: "string" }
      ? string
      : S extends { type: "number" | "integer" }
        ? number
        : S extends { type: "boolean" }
          ? boolean
          : S extends { type: "null" }
            ? null
            : S extends { type: "array" }
              ? S extends { items: infer Item }
                ? FromSchema<Item>[]
                : unknown[]
              : S extends { type: "object"; properties: infer Properties }
                ? FromObject<Properties, S extends { required: readonly (infer Name)[] } ? Name : never>
                : S extends { type: "object" }
                  ? { [name: string]: unknown }
                  : unknown;

type FromObject<Properties, Required> = {
  -readonly [Name in keyof Properties as Name extends Required ? Name : never]: FromSchema<Properties[Name]>;
} & {
  -readonly [Name in keyof Properties as Name extends Required ? never : Name]?: FromSchema<Properties[Name]>;
};

/** What a tool receives in addition to its arguments. */
export interface ToolCall {
  /** Id of the call, the same when it is made again after a crash; in a tool service its key. */
  readonly callId: string;
  /** Aborts when this client stops following the run; the call then stays open. */
  readonly signal: AbortSignal;
  /** In a tool service: shows a text, such as progress, to people who watch the run. */
  readonly show?: (text: string) => void;
}

export interface ToolDefinition<P extends Parameters> {
  name: string;
  /** Its description for the model. */
  description: string;
  /** JSON Schema of the arguments. */
  parameters: P;
  /** What it does to the world, for the rules of the agent. */
  reads?: boolean;
  writes?: boolean;
  /**
   * Makes a call. The returned value is the result: text unchanged, anything else as JSON. A thrown
   * error fails the call; the model receives its message.
   */
  run(args: FromSchema<P>, call: ToolCall): unknown;
}

/** A function with its description for the model. Made by {@link tool}. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Parameters;
  readonly reads: boolean;
  readonly writes: boolean;
  // A method, so that tools with arguments of any type are Tools.
  run(args: never, call: ToolCall): unknown;
}

/** Thrown by a tool to tell the model that the call failed, in the words of the error. */
export class ToolFailed extends Error {
  override readonly name = "ToolFailed";
}

/** Turns a function into a tool. The types of the arguments are derived from the schema. */
export function tool<const P extends Parameters>(definition: ToolDefinition<P>): Tool {
  return { reads: false, writes: false, ...definition };
}

/** Returns the tools by name. Throws InvalidError for a duplicate name. */
export function byName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  const named = new Map<string, Tool>();
  for (const each of tools) {
    if (named.has(each.name)) {
      throw invalid("tools", `duplicate name ${each.name}`);
    }
    named.set(each.name, each);
  }
  return named;
}

/** Returns the specification of a tool for a run. */
export function specOf({ name, description, parameters, reads, writes }: Tool): MessageInitShape<typeof pb.ToolSpecSchema> {
  return {
    name,
    description,
    parametersSchema: JSON.stringify(parameters),
    origin: pb.ToolOrigin.CLIENT,
    annotations: { reads, writes },
  };
}

/** Makes a call. Returns its result as text, and whether it failed. */
export async function runTool(tool: Tool, args: unknown, call: ToolCall): Promise<{ text: string; failed: boolean }> {
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    return { text: `the arguments are no JSON object: ${JSON.stringify(args)}`, failed: true };
  }
  try {
    // The harness has validated the arguments against the schema that the types are made from.
    const value = await tool.run(args as never, call);
    return { text: typeof value === "string" ? value : (JSON.stringify(value) ?? "null"), failed: false };
  } catch (error) {
    return { text: error instanceof ToolFailed ? error.message : String(error), failed: true };
  }
}
