package modeltest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ThinkingMode is what a model of the Messages protocol accepts as the configuration of
// its thinking.
type ThinkingMode string

// The modes.
const (
	// ThinkingAdaptive accepts adaptive and disabled, as Claude 4.7.
	ThinkingAdaptive ThinkingMode = "adaptive"
	// ThinkingAlways accepts adaptive only, as Claude Opus 5.5.
	ThinkingAlways ThinkingMode = "always"
	// ThinkingBudget accepts enabled and disabled, as Claude 4.5.
	ThinkingBudget ThinkingMode = "budget"
	// ThinkingNever accepts no thinking and no effort.
	ThinkingNever ThinkingMode = "never"
)

// RequestThinking is how a request of the Messages protocol configures thinking, and
// what thinking it brings back.
type RequestThinking struct {
	// Type is adaptive, enabled or disabled; empty without a configuration.
	Type string
	// Display is summarized or omitted; empty where it is not set.
	Display string
	// Budget is budget_tokens.
	Budget int
	// Effort is the effort of output_config; empty where it is not set.
	Effort string
	// Blocks are the blocks of thinking that came back, in order, as they came.
	Blocks []json.RawMessage
	// Accepted is the number of Blocks that the server has made and the model reads.
	Accepted int
	// Dropped is the number of Blocks that another model has made, which the service
	// drops without an error.
	Dropped int
	// Missing is the number of blocks at the front of the conversation that have not
	// come back.
	Missing int

	places []thinkingPlace // of Blocks
	prefix string          // digest of the whole request
	first  *thinkingMark   // of the first accepted block
	last   string          // name of the last accepted block
	length int             // blocks of the conversation before the answer
}

// thinkingPlace is where a block of thinking is in a request.
type thinkingPlace struct {
	message, block int
	texts, calls   int    // of the message, before the block
	prefix         string // digest of what precedes the message
	latest         bool   // it is in the newest message of the assistant
}

// messagesTurn is a message of the Messages protocol.
type messagesTurn struct {
	role   string
	blocks []object
	raws   []json.RawMessage // the blocks as they came; empty if the content is a text
}

// readThinking reads the configuration and the blocks of a request whose shape is valid.
func (r *Request) readThinking(o object) error {
	if err := r.readThinkingConfig(o); err != nil {
		return err
	}
	if err := r.readEffort(o); err != nil {
		return err
	}
	h := sha256.New()
	for _, name := range []string{"system", "tools"} {
		var blocks []object
		if json.Unmarshal(o[name], &blocks) != nil {
			_, _ = h.Write(o[name]) // a text, or nothing
		}
		writePrefix(h, name, blocks)
	}
	turns, err := readTurns(o["messages"])
	if err != nil {
		return err
	}
	for i, m := range turns {
		if m.role == "assistant" {
			r.readThinkingBlocks(i, m, sumText(h))
		}
		writePrefix(h, m.role, m.blocks)
	}
	for i := range r.Thinking.places { // the last message is the user's
		r.Thinking.places[i].latest = r.Thinking.places[i].message == len(turns)-2
	}
	r.Thinking.prefix = sumText(h)
	if r.Thinking.Type == "enabled" {
		return checkOpenTurn(turns)
	}
	return nil
}

func readTurns(raw json.RawMessage) ([]messagesTurn, error) {
	var list []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	turns := make([]messagesTurn, len(list))
	for i, m := range list {
		blocks, err := contentBlocks(m.Content, "messages.content")
		if err != nil {
			return nil, err
		}
		turns[i] = messagesTurn{role: m.Role, blocks: blocks}
		_ = json.Unmarshal(m.Content, &turns[i].raws)
	}
	return turns, nil
}

func blockType(o object) string {
	var kind string
	if o.text("type", &kind) != nil {
		return ""
	}
	return kind
}

func isThinking(o object) bool {
	return slices.Contains([]string{"thinking", "redacted_thinking"}, blockType(o))
}

func (r *Request) readThinkingBlocks(message int, m messagesTurn, prefix string) {
	place := thinkingPlace{message: message, prefix: prefix}
	for i, raw := range m.raws {
		switch {
		case isThinking(m.blocks[i]):
			place.block = i
			r.Thinking.Blocks = append(r.Thinking.Blocks, raw)
			r.Thinking.places = append(r.Thinking.places, place)
		case blockType(m.blocks[i]) == "text":
			place.texts++
		default:
			place.calls++
		}
	}
}

// thinkingMembers are the members of the configuration, by its type.
var thinkingMembers = map[string][]string{
	"adaptive": {"type", "display"}, "enabled": {"type", "display", "budget_tokens"}, "disabled": {"type"},
}

func (r *Request) readThinkingConfig(o object) error {
	raw, ok := o["thinking"]
	if !ok {
		return nil
	}
	t := &r.Thinking
	var config object
	if json.Unmarshal(raw, &config) != nil || config.text("type", &t.Type) != nil || thinkingMembers[t.Type] == nil {
		return fmt.Errorf("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", t.Type)
	}
	if err := config.extra("thinking."+t.Type+".", thinkingMembers[t.Type]...); err != nil {
		return err
	}
	if _, ok := config["display"]; ok && (config.text("display", &t.Display) != nil || t.Display != "summarized" && t.Display != "omitted") {
		return fmt.Errorf("thinking.%s.display: Input should be 'summarized' or 'omitted'", t.Type)
	}
	if t.Type != "enabled" {
		return nil
	}
	if json.Unmarshal(config["budget_tokens"], &t.Budget) != nil || t.Budget < 1024 {
		return fmt.Errorf("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	}
	if t.Budget >= r.MaxTokens {
		return fmt.Errorf("`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	return nil
}

func (r *Request) readEffort(o object) error {
	raw, ok := o["output_config"]
	if !ok {
		return nil
	}
	var config object
	if json.Unmarshal(raw, &config) != nil {
		return fmt.Errorf("output_config: Input should be a valid dictionary")
	}
	if err := config.extra("output_config.", "effort", "format"); err != nil {
		return err
	}
	if err := r.messagesFormat(config); err != nil {
		return err
	}
	if _, ok := config["effort"]; !ok {
		return nil
	}
	efforts := []string{"low", "medium", "high", "xhigh", "max"}
	if config.text("effort", &r.Thinking.Effort) != nil || !slices.Contains(efforts, r.Thinking.Effort) {
		return fmt.Errorf("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
	}
	return nil
}

// checkOpenTurn refuses a request with a budget whose open turn does not begin with
// thinking. A turn begins after the newest message of the user that has more than
// results.
func checkOpenTurn(turns []messagesTurn) error {
	first := -1
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].role == "assistant" {
			first = i
		} else if slices.ContainsFunc(turns[i].blocks, func(b object) bool { return blockType(b) != "tool_result" }) {
			break
		}
	}
	if first < 0 || isThinking(turns[first].blocks[0]) {
		return nil
	}
	return fmt.Errorf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, "+
		"a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)",
		first, blockType(turns[first].blocks[0]))
}

// thinkingBlock checks the shape of a block of thinking. The server checks members that
// the protocol does not know later.
func thinkingBlock(o object, at string) error {
	var text, signature string
	kind := blockType(o)
	if _, marked := o["cache_control"]; marked {
		return fmt.Errorf("%s.%s.cache_control: Extra inputs are not permitted", at, kind)
	}
	if kind == "redacted_thinking" {
		if o.text("data", &signature) != nil {
			return fmt.Errorf("%s.redacted_thinking.data: Field required", at)
		}
		return nil
	}
	if o.text("thinking", &text) != nil {
		return fmt.Errorf("%s.thinking.thinking: Field required", at)
	}
	if o.text("signature", &signature) != nil {
		return fmt.Errorf("%s.thinking.signature: Field required", at)
	}
	return nil
}

// parseMessages is ParseMessagesRequest with the models and the memory of the server.
func (s *Server) parseMessages(body []byte) (*Request, error) {
	r, err := ParseMessagesRequest(body)
	if err != nil {
		return nil, err
	}
	if err := s.Thinking[r.Model].check(r.Thinking); err != nil {
		return nil, err
	}
	if err := r.checkThinking(!s.UnboundThinking); err != nil {
		return nil, err
	}
	return r, nil
}

// check refuses a configuration that models of the mode refuse. The empty mode accepts
// each one.
func (m ThinkingMode) check(t RequestThinking) error {
	switch {
	case t.Type == "adaptive" && (m == ThinkingBudget || m == ThinkingNever):
		return fmt.Errorf("adaptive thinking is not supported on this model")
	case t.Type == "enabled" && (m == ThinkingAdaptive || m == ThinkingAlways):
		return fmt.Errorf("\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.") //nolint:staticcheck // the service's own words
	case t.Type == "enabled" && m == ThinkingNever:
		return fmt.Errorf("this model does not support thinking")
	case t.Type == "disabled" && m == ThinkingAlways:
		return fmt.Errorf("\"thinking.type.disabled\" is not supported for this model. Thinking defaults to adaptive mode when not specified")
	case t.Effort != "" && (m == ThinkingBudget || m == ThinkingNever):
		return fmt.Errorf("this model does not support the effort parameter")
	}
	return nil
}

// checkThinking checks each block that came back: the server has made it, the block and
// its position are unchanged, and with bound so is everything before it.
func (r *Request) checkThinking(bound bool) error {
	t := &r.Thinking
	var latest []thinkingMark
	for i, raw := range t.Blocks {
		place := t.places[i]
		at := fmt.Sprintf("messages.%d.content.%d", place.message, place.block)
		_, signature := thinkingParts(raw)
		mark, ok := readMark(signature)
		switch {
		case !ok:
			return fmt.Errorf("%s: Invalid `signature` in `thinking` block", at)
		case mark.Model != r.Model:
			t.Dropped++
			continue
		case !mark.unchanged(raw, signature, place) && place.latest:
			return modifiedThinking(at)
		case !mark.unchanged(raw, signature, place):
			return fmt.Errorf("%s: Invalid `signature` in `thinking` block", at)
		case bound && !mark.bound(t, place):
			return errors.New(at + ": " + boundThinking)
		}
		if t.first == nil {
			t.first, t.Missing = &mark, mark.Number
		}
		t.Accepted++
		t.last, t.length = digestText([]byte(signature)), mark.Number+1
		if place.latest {
			latest = append(latest, mark)
		}
	}
	for i, mark := range latest {
		if mark.Index != i || mark.Count != len(latest) {
			return modifiedThinking(fmt.Sprintf("messages.%d.content.0", t.places[len(t.places)-1].message))
		}
	}
	return nil
}

func modifiedThinking(at string) error {
	return errors.New(at + ": " + thinkingModified)
}

// The answers of the service to thinking that must not come back.
const (
	boundThinking = "Invalid `signature` in `thinking` block. The block is bound to a different conversation. " +
		"Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
	thinkingModified = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. " +
		"These blocks must remain as they were in the original response."
)
