// Package explore is a model checker for the wake protocol: how a run that rests is
// taken up again when something comes in from outside, whoever dies meanwhile. It
// walks through every interleaving of senders, wake workers, repair workers, timers and
// the rest of the loop around one run, with a bounded number of faults, and checks the
// rules below in each state.
//
//	go test ./test/explore                     # seconds; with -short without faults
//	go test ./test/explore -large -timeout 1h  # more faults at once: minutes, gigabytes
//
// A broken rule is reported with a shortest way to it, one line a step, in words.
//
// # What is real
//
// All decisions are made by the code that ships: repair.Wake, repair.Decide,
// repair.StaleTimer, repair.Sweep, gateway.Admit and Standing.AnsweredBy,
// stopdecision.Decide, turn.Begin, Fold, Finish and Complete, runstate.CheckPhases,
// runlog.View. The state that an exploration begins in is made by them too, from the
// first record of a run on. A decision is made once for each different input and
// remembered, as they are pure.
//
// # What stands for what
//
// The shells around them are written anew here, as actions, because they cannot be
// stopped between two interactions with the bus:
//
//	waker.go     repairserver.Server.wake
//	repairer.go  executor.loop.handle, finish and Task.commit; repairserver.Server.inbox
//	sender.go    gatewayserver.Server.give, admit, store, fresher; Log.AppendInbox;
//	             repairserver.Server.fired; a client that sends again
//	sweeper.go   repairserver.Server.sweepRun and tend
//	loop.go      compaction is left out; turn and stopdecision have one worker to whom
//	             nothing happens, a turn is one record, or two when it announces calls
//	bus.go       the stream, its fence, its consumers
//
// Whoever changes one of those functions changes its double here.
//
// # The bus
//
// Log and inbox of the run share one stream with one sequence. An append is taken in if
// the newest record, or the newest item, is the one that it names. It may get its answer;
// or none, and then it is taken in at once, later (if its fence still holds) or never.
// On a stream that is Replicated another append behind the same message is refused
// until it is decided. The log's own Append settles such a refusal and sends again, which
// comes to waiting; so that ErrFenced always means that a newer record is stored.
//
// A view is a prefix of the stream that contains the message that it was asked to
// contain. One shorter than the stream is a stale read. Reads by exact sequence have one
// answer only, and are part of the action that needs them.
//
// A consumer delivers in any order. A message that was not acknowledged is delivered
// again after its worker has put it back, has fallen silent or has died; or, as a
// fault, while it still works (a lapse). A delivery count may be forgotten. Nothing rests
// on one being faster than another: the clock stands still until a timer fires, and a
// timer may do so at any moment after it was set. Heartbeats only make lapses rarer and
// are left out.
//
// # Which actions are one
//
// An action is one interaction with the bus, unless nobody can tell the difference.
// Not Fine, these are one: a delivery and the look that follows it; a look of a gateway
// after which nothing is to be stored and the look of the leader that follows; the look
// of a sender for its item and the append that is fenced on that look; an append and the
// acknowledgement that it allows, while no delivery can lapse (that the worker dies
// between the two, or the acknowledgement is lost, are actions of their own).
// TestActionsTakenTogetherLeadToTheSameRests compares both.
//
// # The rules
//
// In each state: versions are gap-free and linked; the cursor never goes back; every
// step is one that its predecessor leads to by the table of phases; an item, whatever
// its number of copies, has at most one effect; a call has at most one approval and one
// result; session.start, session.complete and run.cancelled happen once a segment; a
// wake takes in at least one item; a step is acknowledged only when a newer one is
// stored; a sweep hands nothing over that somebody has; and what a sender is told is
// what all that ever happened justifies.
//
// Where nothing but faults can happen: the run rests, at park or end; nothing is in the
// inbox beyond the cursor; each item had one effect or one refusal; a message that was
// accepted is in the conversation; each call that was ever awaited has its result or is
// awaited by a run that is parked; a park with a time does not outlive its timer.
//
// Over all states: without faults no state comes back, so there is no livelock.
//
// # What is not here
//
// Runs beside each other share nothing but a stream and are not modelled. Records that
// cannot be read, newer schemas, the bound on memory of ids (256), DeleteRun, workers
// that attend to some runs only and what a turn does inside are tested elsewhere. So is that jetstream is such a bus: see
// pkg/runlog/runlogtest.
package explore
