// Package readback answers calls of read_artifact: it reads messages of a run's
// conversation again, in full or only the lines that match a pattern.
//
// A reference names one message (m412) or several that follow each other (m380-m412). The
// text of a message is its content, followed by its calls with all arguments and by a line
// for each image and document. The text of a reference is that of its messages, one after
// the other. Offsets count the bytes of that text, so the offset of a message's content is 0,
// and sizes follow from the stored messages without reading blobs.
//
// # Invariants
//
//   - The text of a result has at most the given number of tokens, and names the offset at which to
//     continue if more is left. Following these offsets shows every byte once.
//   - Opaque parts and reasoning are never shown.
//   - A page attaches the images and documents whose lines it shows, as far as there is room.
//   - The same conversation and request give the same result.
//   - A search ends: matches, bytes and the size of a pattern are bounded.
//
// A wrong call gets a failed result whose text is the model's instruction how to correct it.
// Errors are those of the functions that read contents and of the context. The package has no
// other effects.
package readback
