// Package shown makes the contents of messages as models are sent them: texts are inline,
// and long results and long strings in the arguments of calls are shortened to their head
// and tail. It also weighs such messages in tokens, and makes the digest of all messages of
// a request.
//
// # Invariants
//
//   - A result, and each string in arguments, has at most the given number of tokens, the
//     line that names what is left out included. A limit too small for that line is exceeded
//     by it.
//   - Arguments remain what they were: JSON remains valid JSON with the same members in the
//     same order, and text that is not valid JSON remains so.
//   - Texts of the user and of the model are never shortened, so the parts of an answer still
//     cover it. Opaque parts are not touched.
//   - The same message, model and limit give the same text, in every process.
//   - Bytes bound tokens: texts of at most as many bytes as the limit has tokens are not
//     counted. Of a long text only as much is counted as its head and tail may need.
//
// Messages are never changed: the results are copies, and share equal parts. The package
// has no effects but reading blobs through the function that Texts is made with; its errors
// are the only ones.
package shown
