package workitem

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem/narration"
)

// Outcome is the result of a call of one of the tools.
type Outcome struct {
	// Result is the text of the result that the model reads.
	Result string
	// IsError is true if nothing was changed. Result has the reason.
	IsError bool
	// Changed are clones of the items that were added or changed, artifacts inline.
	Changed []*harnessv1.WorkItem
	// Events are work_item.changed for each of them, and deliverables.updated if an
	// artifact was stored. The caller stamps them.
	Events []*harnessv1.Event
	// Saved are clones of the artifacts with a kind that were stored, contents inline.
	Saved []*harnessv1.Artifact
}

// Values of work_item.changed.
const (
	added    = "added"
	updated  = "updated"
	artifact = "artifact"
	flagged  = "flagged"
)

// AddItem runs the tool Add. Each tool changes the ledger and, if it changed something,
// clears its stored form. A call that fails changes nothing and returns an error that
// names the correction.
func AddItem(l *harnessv1.WorkItemLedger, args string) Outcome {
	return run(l, Add, args, (*call).add)
}

// UpdateItem runs the tool Update.
func UpdateItem(l *harnessv1.WorkItemLedger, args string) Outcome {
	return run(l, Update, args, (*call).update)
}

// ListItems runs the tool List.
func ListItems(l *harnessv1.WorkItemLedger, args string) Outcome {
	return run(l, List, args, (*call).list)
}

// StoreArtifact runs the tool SetArtifact.
func StoreArtifact(l *harnessv1.WorkItemLedger, args string) Outcome {
	return run(l, SetArtifact, args, (*call).setArtifact)
}

// FlagForRevision runs the tool FlagRevision.
func FlagForRevision(l *harnessv1.WorkItemLedger, args string) Outcome {
	return run(l, FlagRevision, args, (*call).flagRevision)
}

// run runs a tool with arguments in JSON.
func run(l *harnessv1.WorkItemLedger, tool, args string, do func(*call, arguments) error) Outcome {
	if l == nil {
		return refuse(errors.New("this run has no work items; go on without them"))
	}
	a, err := parseArguments(args)
	if err != nil {
		return refuse(fmt.Errorf("%s: %w", tool, err))
	}
	c := &call{ledger: l}
	if err := do(c, a); err != nil {
		return refuse(err)
	}
	return c.out
}

func (c *call) list(arguments) error {
	c.out.Result = listing(c.ledger)
	return nil
}

func refuse(err error) Outcome {
	text := err.Error()
	return Outcome{Result: strings.ToUpper(text[:1]) + text[1:] + ".", IsError: true}
}

// call is the state of a call.
type call struct {
	ledger *harnessv1.WorkItemLedger
	out    Outcome
}

// change is an item after a call, with the kind of the change.
type change struct {
	item *harnessv1.WorkItem
	word string
}

// commit stores the changes in the ledger. It changes nothing if they exceed its limits.
func (c *call) commit(changes ...change) error {
	l := c.ledger
	items, number, before := append([]*harnessv1.WorkItem(nil), l.GetItems()...), l.GetLastNumber(), openCount(l)
	for _, ch := range changes {
		put(l, ch.item)
	}
	err := error(nil)
	switch open := openCount(l); {
	case len(l.Items) > MaxItems && len(l.Items) > len(items):
		err = fmt.Errorf("the ledger is full: it holds %d items, and no more can be added. "+
			"Take this up in an item that there is, with %s and its notes", MaxItems, Update)
	case open > MaxOpen && open > before:
		err = fmt.Errorf("this would leave %d items open; at most %d may be. "+
			"Finish some first, or set those that are not needed to SKIPPED with %s", open, MaxOpen, Update)
	}
	if err != nil {
		l.Items, l.LastNumber = items, number
		return err
	}
	l.Stored = nil
	finished, total := Counts(l)
	for _, ch := range changes {
		c.out.Changed = append(c.out.Changed, proto.CloneOf(ch.item))
		bare := proto.CloneOf(ch.item)
		bare.Artifact = nil
		c.out.Events = append(c.out.Events, event.WorkItemChanged(ch.word, bare, finished, total))
	}
	return nil
}

// find returns a clone of the item that a call names.
func (c *call) find(a arguments) (*harnessv1.WorkItem, error) {
	id := a.name("id")
	if at := index(c.ledger, id); at >= 0 {
		return proto.CloneOf(c.ledger.Items[at]), nil
	}
	if len(c.ledger.GetItems()) == 0 {
		return nil, fmt.Errorf("there is no item %q, and there is no other: add one with %s first", content.Line(id, 60), Add)
	}
	return nil, fmt.Errorf("there is no item %q. The items are %s", content.Line(id, 60), ids(c.ledger.GetItems(), MaxOpen))
}

// ids lists the ids of items, at most limit of them.
func ids(items []*harnessv1.WorkItem, limit int) string {
	names := make([]string, 0, limit)
	for _, i := range items[:min(len(items), limit)] {
		names = append(names, i.GetId())
	}
	text := strings.Join(names, ", ")
	if more := len(items) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (c *call) add(a arguments) error {
	item := &harnessv1.WorkItem{Id: a.name("id"), Title: title(a.text("title")), Status: pending, Notes: cutNotes(a.text("notes"))}
	if item.Title == "" {
		return errors.New("the title is empty: say what is to be done")
	}
	item.Priority, _ = parsePriority(a.text("priority"))
	item.Role, _ = parseRole(a.text("role"))
	switch {
	case item.Id == "":
		item.Id = generatedID(nextNumber(c.ledger))
	case !idFormat().MatchString(item.Id):
		return fmt.Errorf("the id %q cannot be used: %s. Choose another, or leave it out", content.Line(item.Id, 60), idRule)
	case index(c.ledger, item.Id) >= 0:
		return fmt.Errorf("the id %q is taken by %q. Choose another, or leave it out; to change that item use %s",
			item.Id, c.ledger.Items[index(c.ledger, item.Id)].GetTitle(), Update)
	}
	if err := c.commit(change{item, added}); err != nil {
		return err
	}
	c.out.Result = answer(c.ledger, item, "")
	return nil
}

func (c *call) update(a arguments) error {
	item, err := c.find(a)
	if err != nil {
		return err
	}
	before := proto.CloneOf(item)
	text, note := a.name("status"), cutNotes(a.text("notes"))
	if text != "" {
		status, ok := parseStatus(text)
		if !ok {
			return fmt.Errorf("%q is no status; use PENDING, IN_PROGRESS, DONE or SKIPPED", content.Line(text, 60))
		}
		item.Status = status
	} else if note == "" {
		return errors.New("nothing to change: give a status (PENDING, IN_PROGRESS, DONE or SKIPPED), notes, or both")
	}
	if note != "" {
		item.Notes = note
	}
	if text != "" && item.GetStatus() == skipped && item.GetNotes() == "" {
		return fmt.Errorf("not skipped, because %s has no notes: call %s again with status SKIPPED and, in notes, why it is not to be done", item.GetId(), Update)
	}
	if proto.Equal(item, before) {
		c.out.Result = answer(c.ledger, item, "It was so already; nothing has changed.")
		return nil
	}
	if err := c.commit(change{item, updated}); err != nil {
		return err
	}
	hint := ""
	if finished(item) && revisionsOf(c.ledger).isOpen(item) {
		hint = "It stays open until its revision is finished."
		if !item.GetRequiresRevision() {
			hint = "It stays open: the " + auditFailed
		}
	}
	c.out.Result = answer(c.ledger, item, hint)
	return nil
}

func (c *call) setArtifact(a arguments) error {
	item, err := c.find(a)
	if err != nil {
		return err
	}
	text, hint := a.text("content"), ""
	if strings.TrimSpace(text) == "" {
		return errors.New("the content is empty: give the whole product as content; what was stored before stays")
	}
	if len(text) > maxArtifact {
		return fmt.Errorf("the content has %d bytes; an artifact has at most %d: write it to a file, and store where it is", len(text), maxArtifact)
	}
	if role := a.name("role"); role != "" {
		var known bool
		if item.Role, known = parseRole(role); !known {
			hint = fmt.Sprintf("%q is no role, so it was stored as WORKING; the roles are DELIVERABLE, WORKING and CONTROL. ", content.Line(role, 60))
		}
	} else if item.Role == noRole {
		item.Role = working
	}
	item.Control = nil
	if item.Role == control {
		if item.Control, err = parseControl(text); err != nil {
			// Narration around the object is stripped, as it is around any other product.
			if level, stripped, why := narration.Check(text); level == narration.Light {
				if verdict, failed := parseControl(stripped); failed == nil {
					item.Control, err, text = verdict, nil, stripped
					hint += "Stored without words about it: " + why + ". "
				}
			}
		}
		if err != nil {
			return fmt.Errorf("not stored: a CONTROL artifact is a JSON object %s, but %w. What was stored before stays", controlForm, err)
		}
	} else {
		level, stripped, why := narration.Check(text)
		switch level {
		case narration.Heavy:
			return fmt.Errorf("not stored: %s. An artifact is the product alone. Call %s again with the content without these words; what was stored before stays",
				why, SetArtifact)
		case narration.Light:
			text = stripped
			hint += "Stored without words about it: " + why + ". "
		default: // clean
		}
	}
	item.Artifact, item.ArtifactDigest = content.Inline(text), content.Digest([]byte(text))
	if err := c.commit(change{item, artifact}); err != nil {
		return err
	}
	c.out.Events = append(c.out.Events, event.DeliverablesUpdated(item.GetId(), item.GetTitle(), item.GetRole()))
	c.out.Result = answer(c.ledger, item, strings.TrimSpace(hint+next(item)))
	return nil
}

// maxArtifact bounds an artifact, in bytes.
const maxArtifact = 512 << 10

const auditFailed = "audit failed: flag a revision of the items at fault with " + FlagRevision + "."

// next returns the next step after an artifact was stored.
func next(item *harnessv1.WorkItem) string {
	switch {
	case failedAudit(item):
		return "The " + auditFailed
	case !finished(item):
		return "If that finishes the item, set it to DONE."
	}
	return ""
}

func (c *call) flagRevision(a arguments) error {
	item, err := c.find(a)
	if err != nil {
		return err
	}
	reason := cutNotes(a.text("reason"))
	if reason == "" {
		return errors.New("the reason is empty: say what is wrong and what has to change")
	}
	item.RequiresRevision = true
	const prefix = "Revise: "
	child := &harnessv1.WorkItem{
		Id: generatedID(nextNumber(c.ledger)), Title: title(prefix + strings.TrimPrefix(item.GetTitle(), prefix)),
		Status: pending, Priority: high, Notes: reason, Role: item.GetRole(), RevisionOf: item.GetId(),
	}
	if err := c.commit(change{item, flagged}, change{child, added}); err != nil {
		return err
	}
	c.out.Result = answer(c.ledger, child, fmt.Sprintf("%s stays open until %s is finished: make the revision, store it in %s, and set that to DONE.",
		item.GetId(), child.GetId(), child.GetId()))
	return nil
}
