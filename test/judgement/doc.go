// Package judgement drives live runs through a whole mesh to see the loop judge: when
// a run may stop, what it has to show for it, how it is steered, who is asked.
//
// The mesh is the shipped binary in a process of its own; models are functions behind
// a strict server of the provider's protocol, which keeps every request; workspaces,
// commands, hooks and checks are real. Each test is about a row of behaviour that can
// be seen from outside.
package judgement
