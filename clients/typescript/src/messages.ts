/** Messages of the protocol from plain objects. */

import { randomUUID } from "node:crypto";
import { create, type DescMessage, type MessageInitShape, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { invalid } from "./errors.js";

/** Converts an object to a message. Throws InvalidError, with the field, for a value that does not fit. */
export function message<Desc extends DescMessage>(
  desc: Desc,
  field: string,
  init: MessageInitShape<Desc>,
): MessageShape<Desc> {
  try {
    const made = create(desc, init);
    toBinary(desc, made); // a value of a wrong type fails here and not in the middle of a call
    return made;
  } catch (error) {
    throw invalid(field, error instanceof Error ? error.message.replace(/\s+/g, " ") : String(error));
  }
}

export function newId(): string {
  return `ts-${randomUUID().replaceAll("-", "")}`;
}
