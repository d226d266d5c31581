// Package explore is a model checker for the wake protocol: how a parked or ended run
// continues when an input arrives, whichever process dies meanwhile. It visits every
// interleaving of senders, wake workers, repair workers, timers and the rest of the
// loop around one run, with a bounded number of faults, and checks the rules below in
// each state.
//
//	go test ./test/explore                     # seconds; with -short without faults
//	go test ./test/explore -large -timeout 1h  # more faults in one space: minutes, gigabytes
//
// A broken rule is reported with a shortest path to it, one line for each step.
//
// # What is real
//
// All decisions are made by the code that ships: the machines repair.Wake, Timer,
// Recovery and InboxRead, gateway.Submission and turn.Next, the decisions
// repair.Decide and stopdecision.Decide, repair.Listing, and the rules of
// runstate.CheckPhases and runlog.View. They also make the state in which an
// exploration starts, from the first record of a run on. A decision is made once for
// each different input and remembered, because it is pure.
//
// # What the model replaces
//
// The shells of the machines only carry out actions. Instead, the model chooses
// the result of each action and feeds it to the same machine:
//
//	waker.go     repair.Wake, one for each delivered message
//	sender.go    gateway.Submission, and a client that sends again; repair.Timer
//	sweeper.go   repair.Recovery and Listing
//	repairer.go  repair.InboxRead, in a worker that stands for executor.loop.handle,
//	             finish and Task.commit: a change there is repeated here
//	loop.go      turn.Next and stopdecision.Decide, in one worker without faults;
//	             compaction is left out. A turn is one record, or two if it announces calls
//	bus.go       the stream, its fence and its consumers; sender.go has AppendInbox
//
// # The bus
//
// Log and inbox of the run share one stream with one sequence. The stream accepts an
// append if the newest record, or the newest item, is the one that it names. The append
// may get its answer. If the answer is lost, it is stored immediately, later (if its
// fence still holds) or never. On a stream that is Replicated, another append after the
// same message is refused until the first is decided. The run log resolves such a
// refusal and retries, which amounts to waiting: ErrFenced always means that a newer
// record is stored.
//
// A view is a prefix of the stream that contains the message that the read names. One
// that is shorter than the stream is a stale read. Reads by exact sequence have one
// answer only, and are part of the action that needs them.
//
// A consumer delivers in any order. A message that was not acknowledged is delivered
// again after its worker has put it back, has fallen silent or has died; or, as a fault,
// while the worker still works (a lapse). A delivery count may be forgotten. The rules
// do not depend on speed: the clock advances only when a timer fires, and a timer may
// fire at any moment after it was set. Heartbeats only make lapses rarer and are left
// out.
//
// # Which actions are one
//
// An action is one interaction with the bus, unless no other actor can observe the
// difference. Without Fine, these are one action: a delivery and the read that follows
// it; a read of a gateway after which nothing is to be stored and the read of the leader
// that follows; the read of a sender for its item and the append that is fenced on it;
// an append and the acknowledgement that it allows, unless a delivery can lapse. A
// worker that dies between the two, or whose acknowledgement is lost, has separate
// actions. TestCombinedActionsLeadToTheSameTerminals compares both.
//
// # The rules
//
// In each state: versions are gap-free and linked; the cursor never moves back; every
// step is one that the table of phases allows after its predecessor; an item, whatever
// its number of copies, has at most one effect; a call has at most one approval and one
// result; session.start, session.complete and run.cancelled happen once a segment; a
// wake takes in at least one item; a step is acknowledged only when a newer one is
// stored; a sweep never commits a step again that a worker has; and the reply to a
// sender is justified by all that ever happened.
//
// In each terminal state, where only faults can happen: the run is parked or has ended;
// the inbox holds nothing beyond the cursor; each item had one effect or one refusal; an
// accepted message is in the conversation; each call that was ever awaited has its
// result, or a parked run awaitedCall it; a park with a time does not outlive its timer.
//
// Over all states: without faults no state comes back, so there is no livelock.
//
// # Trees
//
// tree.go is a separate, smaller model: a parent and a child, with the functions of package tree for orders and
// reports. The runs are reduced to whether they work, wait, are halted or have ended; orders and reports may come twice
// and late, and the parent may be deleted.
//
// # What is not here
//
// Other runs share only a stream and are not modelled. Records that cannot be decoded,
// newer schemas, the bound on remembered ids (256), DeleteRun, and processes with a
// scope of runs are tested elsewhere. Package test/kit/runlogtest tests that jetstream
// is such a bus.
package explore
