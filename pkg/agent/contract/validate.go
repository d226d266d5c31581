package contract

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var idFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`) })

// Validate rejects a contract that can never be verified, as far as that is known before
// a run. It accepts contracts from outside, resolved or not. The error is a
// *fault.FieldError.
func Validate(c *harnessv1.TaskContract) error {
	if err := checkShape(c); err != nil {
		return err
	}
	if _, err := checkOutputs(c); err != nil {
		return err
	}
	if err := checkCounts(c); err != nil {
		return err
	}
	return checkConfidence(c)
}

// checkConfidence refuses a minimum confidence that a required output can never have,
// because only the model vouches for it.
func checkConfidence(c *harnessv1.TaskContract) error {
	least := minConfidence(c.GetAcceptability())
	if least <= claimed {
		return nil
	}
	for _, o := range Resolve(c).GetRequiredOutputs() {
		if o.GetPredicate().GetType() == harnessv1.PredicateType_PREDICATE_TYPE_ALWAYS_TRUE && !o.GetOptional() {
			return fault.Invalid("acceptability.min_confidence",
				"is %v, which %s can never have: nothing checks it, and the word of the model counts %v; give it a predicate, make it optional, or set at most %[3]v",
				least, o.GetId(), claimed)
		}
	}
	return nil
}

// checkShape checks everything but the single outputs.
func checkShape(c *harnessv1.TaskContract) error {
	outputs, lines, questions := len(c.GetRequiredOutputs()), len(c.GetRequirements()), len(c.GetQuestions())
	switch {
	case outputs+lines+questions == 0:
		return fault.Invalid("required_outputs", "the contract is empty: set required_outputs, requirements or questions")
	case outputs+lines > maxOutputs && lines > 0:
		return fault.Invalid("requirements", "%d outputs including requirements exceed the limit of %d", outputs+lines, maxOutputs)
	case outputs > maxOutputs:
		return fault.Invalid("required_outputs", "%d outputs exceed the limit of %d", outputs, maxOutputs)
	case questions > maxQuestions:
		return fault.Invalid("questions", "%d questions exceed the limit of %d", questions, maxQuestions)
	case c.GetStored() != nil:
		return fault.Invalid("stored", "is set by the harness: leave it out")
	}
	for i, line := range c.GetRequirements() {
		if strings.TrimSpace(line) == "" {
			return fault.Invalid(fmt.Sprintf("requirements[%d]", i), "is empty: expected a requirement")
		}
	}
	ids := map[string]int{}
	for i, q := range c.GetQuestions() {
		field := fmt.Sprintf("questions[%d]", i)
		if err := checkID(field+".id", q.GetId(), "questions", i, ids); err != nil {
			return err
		}
		if strings.TrimSpace(q.GetQuestion()) == "" {
			return fault.Invalid(field+".question", "is required: the text of the question")
		}
	}
	a := c.GetAcceptability()
	if a.GetMaxUnknowns() > maxOutputs {
		return fault.Invalid("acceptability.max_unknowns", "is %d, must be at most %d", a.GetMaxUnknowns(), maxOutputs)
	}
	if m := a.GetMinConfidence(); math.IsNaN(m) || m < 0 || m > 1 {
		return fault.Invalid("acceptability.min_confidence", "is %v, must be in [0, 1]", m)
	}
	if size := proto.Size(Resolve(c)); size > maxEncoded {
		return fault.Invalid("required_outputs", "an encoded contract of %d bytes exceeds the limit of %d: shorten its texts or schemas", size, maxEncoded)
	}
	return nil
}

// checkOutputs checks and compiles the outputs of a contract, resolved or not.
func checkOutputs(c *harnessv1.TaskContract) ([]*output, error) {
	outputs := make([]*output, 0, len(c.GetRequiredOutputs()))
	ids := map[string]int{}
	for i, spec := range c.GetRequiredOutputs() {
		field := fmt.Sprintf("required_outputs[%d]", i)
		if err := checkID(field+".id", spec.GetId(), "required_outputs", i, ids); err != nil {
			return nil, err
		}
		o, err := compileOutput(field+".predicate", spec)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, o)
	}
	for i := range c.GetRequirements() {
		if first, taken := ids[lineID(i)]; taken {
			return nil, fault.Invalid(fmt.Sprintf("required_outputs[%d].id", first),
				"duplicate id %s: requirements[%d] gets it; choose another", lineID(i), i)
		}
	}
	return outputs, nil
}

func checkID(field, id, list string, i int, ids map[string]int) error {
	if !idFormat().MatchString(id) {
		return fault.Invalid(field, "%q does not match [A-Za-z0-9_.-]{1,64}", clip(id, 80))
	}
	if first, taken := ids[id]; taken {
		return fault.Invalid(field, "duplicate id %s: %s[%d] has it; choose another", id, list, first)
	}
	ids[id] = i
	return nil
}
