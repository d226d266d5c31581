// Package contract judges task contracts: whether what a run was to bring about
// is there.
//
// A contract goes through it in this order. Validate refuses one that could
// never be verified, before anything is stored. Resolve writes out what is left
// unsaid. Compile makes its predicates ready. At each attempt to stop, Check
// looks at the outputs one by one, Record puts what was seen into the ledger,
// and Evaluate says from the ledger alone whether that is enough.
//
// All of it is pure but Check, which looks at the world through Sources. A
// source that fails makes an output unknown, never met and never a failure of
// the run: a check that gave no answer proves nothing.
//
// What counts as met: an output that is MET, or PARTIALLY_MET where the contract
// allows that, with at least the least confidence. A contract is satisfied when
// all required outputs count as met, but for as many unknown ones as it
// tolerates, and all required questions are answered.
package contract

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bounds of a contract.
const (
	// MaxOutputs is how many outputs it may have, requirement lines included.
	MaxOutputs = 200
	// MaxQuestions is how many questions it may have.
	MaxQuestions = 32
	// MaxEncoded is how large it may be as encoded protobuf, in bytes.
	MaxEncoded = 96 << 10
)

// Defaults of a contract.
const (
	// DefaultMinConfidence is the least confidence of an output that counts as met.
	DefaultMinConfidence = 0.6
	// DefaultCommandTimeout is the time that a COMMAND_SUCCEEDS may take.
	DefaultCommandTimeout = 120 * time.Second
	// DefaultRemoteTimeout is the time that a CUSTOM by grpc may take.
	DefaultRemoteTimeout = 5 * time.Second
)

// Confidence of a check by a machine, and of the model's own word.
const (
	certain  = 1.0
	itsWord  = 0.6
	response = "response"
)

// Resolve returns a copy with everything that is left unsaid written out:
// requirement lines as outputs R1, R2 and so on behind the given ones,
// ALWAYS_TRUE where there is no predicate, the response where CONTAINS_TEXT
// names no text, and the acceptability. Resolving again changes nothing; nil
// stays nil.
func Resolve(c *harnessv1.TaskContract) *harnessv1.TaskContract {
	if c == nil {
		return nil
	}
	r := proto.CloneOf(c)
	for i, line := range r.GetRequirements() {
		r.RequiredOutputs = append(r.RequiredOutputs, &harnessv1.RequiredOutput{Id: lineID(i), Description: line})
	}
	r.Requirements = nil
	for _, o := range r.GetRequiredOutputs() {
		if o.Predicate == nil {
			o.Predicate = &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_ALWAYS_TRUE}
		}
		if o.Predicate.Type == harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT && o.Predicate.In == "" {
			o.Predicate.In = response
		}
	}
	if r.Acceptability == nil {
		r.Acceptability = &harnessv1.Acceptability{}
	}
	if r.Acceptability.MaxUnknowns == nil {
		r.Acceptability.MaxUnknowns = proto.Uint32(0)
	}
	if r.Acceptability.MinConfidence == nil {
		r.Acceptability.MinConfidence = proto.Float64(DefaultMinConfidence)
	}
	if r.Acceptability.AllowPartial == nil {
		r.Acceptability.AllowPartial = proto.Bool(false)
	}
	if !proto.Equal(r, c) {
		r.Stored = nil // It holds the contract as it was.
	}
	return r
}

// lineID is the id of a requirement line.
func lineID(i int) string { return fmt.Sprintf("R%d", i+1) }

// Contract is a resolved contract that is ready to be checked. It is never
// changed and may be used by many goroutines.
type Contract struct {
	contract *harnessv1.TaskContract
	byID     map[string]*output
	needs    bool
}

// Compile makes a contract ready, resolving it if it is not yet. The error is
// a *fault.FieldError.
func Compile(c *harnessv1.TaskContract) (*Contract, error) {
	r := Resolve(c)
	outputs, err := checkOutputs(r)
	if err != nil {
		return nil, err
	}
	out := &Contract{contract: r, byID: make(map[string]*output, len(outputs))}
	for _, o := range outputs {
		out.byID[o.spec.GetId()] = o
		out.needs = out.needs || o.needsConversation()
	}
	return out, nil
}

// Proto is the resolved contract; shared, not to be changed.
func (c *Contract) Proto() *harnessv1.TaskContract { return c.contract }

// NeedsConversation reports whether an output is about the messages of the run,
// beyond the last response.
func (c *Contract) NeedsConversation() bool { return c.needs }

// Cheap reports whether looking at an output runs no command and asks no other
// program.
func (c *Contract) Cheap(id string) bool {
	p := c.byID[id].predicate()
	return p.GetType() != harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS && p.GetGrpc() == ""
}
