// Package view makes the messages that a model is sent out of a conversation and a
// compaction plan, and returns the plan's action on each message.
//
// A plan is a list of watermarks: an action, a class of messages, and the last message
// that it applies to. Rules.Action is the one function that reads it; the decision of
// compaction and the rendering both use it. A message is described by an Entry, which is
// derived from the log without reading blobs.
//
// # Invariants
//
//   - A view is a valid conversation, whatever the plan: see conversation.View. At least
//     one message of the user is in it if the conversation has one.
//   - The system prompt, messages that are kept and the user's own messages are never
//     cleared, summarised or dropped. The user's can be externalised.
//   - Older texts of the agent and of the harness that are dropped are named by one line.
//   - A message that arrives changes nothing of the view before it, so the prompt's prefix
//     stays as it is until the plan changes.
//   - Whatever a view shortens or leaves out is named by a reference for read_artifact.
//   - The opaque parts of a message are in the view whole or not at all.
//   - The wording depends on the version of the renderer in the plan. A new wording gets a
//     new version, and the old one stays for runs whose plan names it.
//
// Stored messages are never changed. The package is pure and reads no blobs: it needs only
// their previews.
package view

// Renderer is the newest version of the wording and the rules, for new plans. Since version 2 no line
// replaces a text that is hardly longer, and results that cannot be produced again are never cleared.
const Renderer = 2
