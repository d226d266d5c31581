package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// list returns the names of the models that the server lists, in its order.
func (p *Provider) list(ctx context.Context) ([]string, error) {
	res, err := p.client.Get(ctx, p.protocol.ModelsPath)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	body, err := readAll(res)
	if err != nil {
		return nil, err
	}
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, Cut("the list of models is not JSON", err)
	}
	var names []string
	for _, m := range page.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	return names, nil
}

// maxNamed bounds the models that an error lists.
const maxNamed = 12

// Choose returns the model for requests that name none: the first of choices that a
// provider lists, with or without the date of a snapshot, else the only one listed. The
// error lists them.
func Choose(provider string, listed, choices []string) (string, error) {
	for _, choice := range choices {
		if i := slices.IndexFunc(listed, func(name string) bool { return isChoice(name, choice) }); i >= 0 {
			return listed[i], nil
		}
	}
	switch len(listed) {
	case 0:
		return "", &model.Error{RetryAfter: -1, Message: "no model was named and the server lists none: name one, such as " + provider + ":NAME"}
	case 1:
		return listed[0], nil
	}
	names := make([]string, 0, maxNamed)
	for _, name := range listed[:min(len(listed), maxNamed)] {
		names = append(names, content.Line(name, 80))
	}
	more := ""
	if rest := len(listed) - len(names); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	return "", &model.Error{RetryAfter: -1, Message: fmt.Sprintf("no model was named, and %s lists %d: %s%s; name one with --model %s:NAME", provider, len(listed), strings.Join(names, ", "), more, provider)}
}

// isChoice reports whether a listed name is a choice, or a snapshot of it.
func isChoice(name, choice string) bool {
	rest, found := strings.CutPrefix(strings.TrimPrefix(name, "models/"), choice)
	return found && (rest == "" || rest[0] == '-' && len(rest) >= 9 && strings.Trim(rest, "-0123456789") == "")
}
