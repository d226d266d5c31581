/**
 * A tool service: notes that agents add and read.
 *
 *     npm run notesservice -- --listen 127.0.0.1:9000 --file notes.txt
 *     harness run --tool-service notes=127.0.0.1:9000 "Note that the build is green."
 *
 * Its keys outlive the process: a note whose answer was lost is not added a second time.
 */

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { serveTools, tool } from "harnessmesh";

const { values } = parseArgs({
  options: { listen: { type: "string", default: "127.0.0.1:9000" }, file: { type: "string", default: "notes.txt" } },
});

const addNote = tool({
  name: "add_note",
  description: "Adds a note.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"], additionalProperties: false },
  run({ text }, { show }) {
    show?.(`adding ${JSON.stringify(text)}\n`);
    appendFileSync(values.file, `${text}\n`);
    return "noted";
  },
});

const readNotes = tool({
  name: "read_notes",
  description: "Returns all notes.",
  parameters: { type: "object", additionalProperties: false },
  reads: true,
  run: () => (existsSync(values.file) ? readFileSync(values.file, "utf8").trim().split("\n") : []),
});

const served = await serveTools({
  tools: [addNote, { ...readNotes, hints: { parallelSafe: true } }],
  address: values.listen,
  memory: `${values.file}.calls`,
});
console.log(JSON.stringify({ listening: served.address }));
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void served.close());
}
