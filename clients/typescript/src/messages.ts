/** Messages of the protocol from plain objects. */

import { randomUUID } from "node:crypto";
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { invalid, InvalidError } from "./errors.js";

/** An initial value in which enum values may be written as in agent files, such as "ask". */
export type Spelt<T> = T extends number
  ? `${number}` extends `${T}`
    ? T
    : T | string
  : T extends string | bigint | boolean | null | undefined | Uint8Array
    ? T
    : T extends readonly (infer E)[]
      ? Spelt<E>[]
      : T extends object
        ? { [K in keyof T]: Spelt<T[K]> }
        : T;

/** The initial value of a message, as {@link message} takes it. */
export type Init<Desc extends DescMessage> = Spelt<MessageInitShape<Desc>>;

/**
 * Converts an object to a message. Throws InvalidError, with the field, for a value that does not fit; for a
 * word that an enum does not know it lists those that it knows.
 */
export function message<Desc extends DescMessage>(desc: Desc, field: string, init: Init<Desc>): MessageShape<Desc> {
  try {
    const made = create(desc, spelt(desc, field, init) as MessageInitShape<Desc>);
    toBinary(desc, made); // a value of a wrong type fails here and not in the middle of a call
    return made;
  } catch (error) {
    if (error instanceof InvalidError) {
      throw error;
    }
    throw invalid(field, error instanceof Error ? error.message.replace(/\s+/g, " ") : String(error));
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

/** Replaces the words for enum values in an object by their numbers. A message is returned unchanged. */
function spelt(desc: DescMessage, place: string, init: unknown): unknown {
  if (!isObject(init) || "$typeName" in init || desc.typeName.startsWith("google.protobuf.")) {
    return init;
  }
  const result: Record<string, unknown> = { ...init };
  for (const field of desc.fields) {
    const name = field.oneof ? field.oneof.localName : field.localName;
    const given = init[name];
    if (!field.oneof) {
      if (given !== undefined && given !== null) {
        result[name] = speltValue(field, `${place}.${name}`, given);
      }
    } else if (isObject(given) && given["case"] === field.localName) {
      result[name] = { ...given, value: speltValue(field, `${place}.${field.localName}`, given["value"]) };
    }
  }
  return result;
}

function speltValue(field: DescField, place: string, given: unknown): unknown {
  const one = (value: unknown, at: string): unknown => {
    if (field.enum) {
      return typeof value === "string" ? numberOf(field.enum, at, value) : value;
    }
    return field.message ? spelt(field.message, at, value) : value;
  };
  if (field.fieldKind === "list") {
    return Array.isArray(given) ? given.map((value: unknown, i) => one(value, `${place}[${i}]`)) : given;
  }
  if (field.fieldKind === "map") {
    return isObject(given)
      ? Object.fromEntries(Object.entries(given).map(([key, value]) => [key, one(value, `${place}.${key}`)]))
      : given;
  }
  return one(given, place);
}

function numberOf(kind: DescEnum, place: string, word: string): number {
  const upper = word.toUpperCase().replaceAll("-", "_");
  const found = kind.values.find((value) => value.name === word || value.localName === upper);
  if (!found) {
    const known = kind.values.filter((value) => value.number !== 0).map((value) => value.localName.toLowerCase());
    throw invalid(place, `"${word}": expected one of ${known.join(", ")}`);
  }
  return found.number;
}

export function newId(): string {
  return `ts-${randomUUID().replaceAll("-", "")}`;
}
