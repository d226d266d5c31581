package quality

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// Texts are the prompts of a run that replace built-in ones.
type Texts []*harnessv1.Prompt

// TextsOf returns the prompts for a kind of work: those that the kind sets itself come before set.
func TextsOf(k Kind, set []*harnessv1.Prompt) Texts {
	var texts Texts
	for id, text := range k.GetPrompts() {
		texts = append(texts, &harnessv1.Prompt{Id: id, Text: text, Digest: PromptDigest(text)})
	}
	return append(texts, set...)
}

// Of returns the text of a prompt.
func (t Texts) Of(id string) string {
	if p := t.find(id); p != nil {
		return p.GetText()
	}
	return prompts[id]
}

func (t Texts) find(id string) *harnessv1.Prompt {
	for _, p := range t {
		if p.GetId() == id {
			return p
		}
	}
	return nil
}

// Use gives a request the text of its prompt, and records which one it is.
func (t Texts) Use(r *harnessv1.JobRequest) {
	id := r.GetPromptUsed().GetId()
	if p := t.find(id); p != nil {
		WithPrompt(r, id, p.GetText())
		r.PromptUsed = &harnessv1.Prompt{Id: id, Tier: p.GetTier(), Digest: p.GetDigest(), SetTime: p.GetSetTime(), SetBy: p.GetSetBy()}
	}
}
