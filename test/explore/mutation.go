package explore

// Mutation breaks the protocol in one place, in the model only.
type Mutation string

const (
	// AckOnConflict: a wake worker whose append is refused acknowledges. The stream may
	// have refused it because of another append that is then never stored.
	AckOnConflict Mutation = "a wake worker acknowledges on a conflict alone"
	// AckResolved: it acknowledges when a newer record is known to be stored. This is
	// harmless: the record that follows a park or an end is a trigger, and its worker
	// reads a view that contains the trigger, and so the message too. Only an unresolved
	// refusal must not be trusted.
	AckResolved Mutation = "a wake worker acknowledges on a resolved conflict"
	// WakeUnvalidated: the view of a wake worker need not contain its message.
	WakeUnvalidated Mutation = "the view of a wake need not contain the message"
	// DrainUnvalidated: the view of a woken repair need not contain its trigger.
	DrainUnvalidated Mutation = "the view of a woken repair need not contain the trigger"
	// CursorBeforeRefused: the cursor stops before an item that is refused.
	CursorBeforeRefused Mutation = "the cursor is not moved past refused items"
	// DrainedForgotten: the ids of drained items are not kept.
	DrainedForgotten Mutation = "drained ids are forgotten"
	// AnswersForgotten: the ids of calls that have an answer are not kept.
	AnswersForgotten Mutation = "answered calls are forgotten"
	// WakeUnfenced: triggers of wakes are appended without a fence.
	WakeUnfenced Mutation = "a wake is appended without a fence"
	// CommitUnfenced: all records are appended without a fence.
	CommitUnfenced Mutation = "repair commits without a fence"
	// AckFirst: a wake worker acknowledges before it does anything.
	AckFirst Mutation = "a wake worker acknowledges before it appends"
	// AckPutBack: a repair worker acknowledges its step when its append has no answer.
	AckPutBack Mutation = "repair acknowledges a step that it has to put back"
	// SendUnfenced: senders append without an expected last sequence.
	SendUnfenced Mutation = "a sender appends without expected last sequence"
	// SendWithoutRead: senders do not read the inbox for their item before they append it.
	SendWithoutRead Mutation = "a sender appends without a search for its id"
	// SecondUnchecked: the sender of an answer does not search for an earlier one after
	// its append.
	SecondUnchecked Mutation = "a sender does not search for an answer before its own"
	// FoundUnchecked: nor does it when it finds its own answer in the inbox, appended by an
	// attempt that had no answer.
	FoundUnchecked Mutation = "a sender that finds its answer does not search for one before it"
	// AnswererForgotten: the item from which a call got its answer is not kept.
	AnswererForgotten Mutation = "the item that answered a call is forgotten"
	// RefusalsUnchecked: a gateway that has nothing to store replies after a stale read.
	RefusalsUnchecked Mutation = "a refusal is not confirmed by the leader"
	// TimersRemembered: the ids of timers that were refused are kept.
	TimersRemembered Mutation = "refused timers are remembered"
	// TimersFoundEarlier: a timer that fires again is taken for the item of its first
	// firing, even if that is older than the view.
	TimersFoundEarlier Mutation = "a timer is searched for in all undrained items"
	// ParksNotDelivered: only items wake a run, not the steps to park and end.
	ParksNotDelivered Mutation = "steps to park and end do not wake"
)
