package explore

// Mutation is one place in which the protocol is broken, in the model only.
type Mutation string

const (
	// AckOnConflict: a wake worker whose append is refused acknowledges. The stream may
	// have refused it because of another append that then comes to nothing.
	AckOnConflict Mutation = "a wake worker acknowledges on a conflict alone"
	// AckSettled: it acknowledges when a newer record is known to be there. This one is
	// harmless: what follows a record by which a run rests is a trigger, and whoever has
	// that looks with a view that contains the trigger, and so the message too. It is the
	// refusal that nobody has settled that must not be trusted.
	AckSettled Mutation = "a wake worker acknowledges on a conflict that is settled"
	// WakeUnvalidated: the view of a wake worker need not contain its message.
	WakeUnvalidated Mutation = "the view of a wake need not contain the message"
	// DrainUnvalidated: the view of a woken repair need not contain its trigger.
	DrainUnvalidated Mutation = "the view of a woken repair need not contain the trigger"
	// RefusedStay: the cursor stays in front of an item that is refused.
	RefusedStay Mutation = "the cursor is not moved past refused items"
	// DrainedForgotten: the ids of the items taken in are not kept.
	DrainedForgotten Mutation = "drained ids are forgotten"
	// AnswersForgotten: the calls that were answered are not kept.
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
	// SendWithoutLook: senders do not look for their item before they append it.
	SendWithoutLook Mutation = "a sender appends without a look for its id"
	// SecondUnchecked: who has appended an answer does not look whether another one
	// came first.
	SecondUnchecked Mutation = "a sender does not look for an answer before its own"
	// FoundUnchecked: nor does it when it finds its own answer in the inbox, appended by an
	// attempt that had no answer.
	FoundUnchecked Mutation = "a sender that finds its answer does not look for one before it"
	// WhoForgotten: of the calls that were answered is not kept by which item.
	WhoForgotten Mutation = "who answered a call is forgotten"
	// RefusalsUnchecked: a gateway that has nothing to store answers what it sees, also
	// when it sees it at a replica that is behind.
	RefusalsUnchecked Mutation = "a refusal is not decided again on what the leader knows"
	// TimersRemembered: the ids of timers that were refused are kept.
	TimersRemembered Mutation = "refused timers are remembered"
	// TimersFoundEarlier: a timer that fires again is taken for the item of its first
	// firing, also when that came before the look.
	TimersFoundEarlier Mutation = "a timer is looked for in all that waits"
	// RestsNotDelivered: only items wake a run, not the steps by which it comes to rest.
	RestsNotDelivered Mutation = "steps to park and end do not wake"
)
