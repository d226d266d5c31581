// Package contract decides whether a run has done what its task contract requires.
//
// A contract goes through the package in this order. Validate rejects one that can never
// be verified, before anything is stored. Resolve fills in defaults. Compile compiles
// its predicates. At each attempt to stop, Check checks the outputs one by one, Record
// stores the results in the ledger, and Evaluate decides from the ledger alone.
//
// Only Check is not pure: it reads the outside through Sources. A source that fails
// makes an output unknown. It never makes it met and never fails the run, because a
// check without an answer proves nothing.
//
// An output counts as met if it is MET, or PARTIALLY_MET where the contract allows that,
// with at least the minimum confidence. A contract is satisfied if all required outputs
// count as met, except for as many unknown ones as it tolerates, and all required
// questions are answered.
package contract

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Limits of a contract.
const (
	// maxOutputs bounds the outputs, requirement lines included.
	maxOutputs = 200
	// maxQuestions bounds the questions.
	maxQuestions = 32
	// maxEncoded bounds the contract as encoded protobuf, in bytes.
	maxEncoded = 96 << 10
	// MaxCount bounds the artifacts that the required outputs count, because a run saves no more.
	MaxCount = workitem.MaxArtifacts
)

// Defaults of a contract.
const (
	// defaultMinConfidence is the minimum confidence of an output that counts as met.
	defaultMinConfidence = 0.6
	// DefaultCommandTimeout is the timeout of COMMAND_SUCCEEDS.
	DefaultCommandTimeout = 120 * time.Second
	// DefaultRemoteTimeout is the timeout of CUSTOM with grpc.
	DefaultRemoteTimeout = 5 * time.Second
)

// Confidence of a check, and of the claim of the model where nothing is checked.
const (
	certain = 1.0
	claimed = 0.6
)

// response names the last response as the text to check.
const response = "response"

// Resolve returns a copy with its defaults filled in: requirement lines become outputs
// R1, R2 and so on after the given ones, a missing predicate becomes ALWAYS_TRUE, the
// default text of CONTAINS_TEXT the response, the default number of ARTIFACT_COUNT 1, and the
// acceptability is complete.
// Resolving again changes nothing. Resolve(nil) is nil.
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
		if o.Predicate.Type == artifactCount && o.Predicate.Min == nil {
			o.Predicate.Min = proto.Uint32(1)
		}
	}
	if r.Acceptability == nil {
		r.Acceptability = &harnessv1.Acceptability{}
	}
	if r.Acceptability.MaxUnknowns == nil {
		r.Acceptability.MaxUnknowns = proto.Uint32(0)
	}
	if r.Acceptability.MinConfidence == nil {
		r.Acceptability.MinConfidence = proto.Float64(defaultMinConfidence)
	}
	if r.Acceptability.AllowPartial == nil {
		r.Acceptability.AllowPartial = proto.Bool(false)
	}
	if !proto.Equal(r, c) {
		r.Stored = nil // it refers to the contract before this change
	}
	return r
}

// ResolveQuestions fills in whether each question of a resolved contract is required, as a
// new run keeps it: those of an autonomous agent are not. A contract that is stored without
// keeps its meaning. It changes c.
func ResolveQuestions(c *harnessv1.TaskContract, autonomous bool) {
	for _, q := range c.GetQuestions() {
		if q.Required == nil {
			q.Required = proto.Bool(!autonomous)
		}
	}
}

// lineID returns the id of a requirement line.
func lineID(i int) string { return fmt.Sprintf("R%d", i+1) }

// Contract is a compiled contract. It never changes and is safe for concurrent use.
type Contract struct {
	contract *harnessv1.TaskContract
	byID     map[string]*output
}

// Compile resolves and compiles a contract. The error is a *fault.FieldError.
func Compile(c *harnessv1.TaskContract) (*Contract, error) {
	r := Resolve(c)
	outputs, err := checkOutputs(r)
	if err != nil {
		return nil, err
	}
	out := &Contract{contract: r, byID: make(map[string]*output, len(outputs))}
	for _, o := range outputs {
		out.byID[o.spec.GetId()] = o
	}
	return out, nil
}

// Proto returns the resolved contract. It is shared and must not be changed.
func (c *Contract) Proto() *harnessv1.TaskContract { return c.contract }

// ArtifactKinds returns the kinds of artifacts that outputs count, in the order of the contract;
// none for a nil contract.
func (c *Contract) ArtifactKinds() []string {
	if c == nil {
		return nil
	}
	return ArtifactKinds(c.contract)
}

// Cheap reports whether the check of an output runs no command and calls no service.
func (c *Contract) Cheap(id string) bool {
	p := c.byID[id].predicate()
	return p.GetType() != harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS && p.GetGrpc() == ""
}
