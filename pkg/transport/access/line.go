package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// hexToken matches text that is probably a token.
var hexToken = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-fA-F]{32,}$`) })

// attributeForm matches an attribute. A token in the wrong column, which may end with =,
// does not match.
var attributeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]{1,16}=[^=]*$`) })

// NoRights is the value of may= that permits nothing.
const noRights = "none"

// parseLine parses the fields of a line: the token, its namespaces if they are given, and
// attributes. Errors never contain a value, which may be a token in the wrong column.
func parseLine(fields []string) (entry, error) {
	token := fields[0]
	switch {
	case len(token) < minToken:
		return entry{}, fmt.Errorf("a token must have at least %d characters; `openssl rand -hex 32` creates one", minToken)
	case !tokenShape().MatchString(token):
		return entry{}, errors.New("a token must consist of letters, digits and . _ ~ + / -")
	}
	e := entry{digest: sha256.Sum256([]byte(token))}
	fields = fields[1:]
	if len(fields) > 0 && !attributeForm().MatchString(fields[0]) {
		if err := e.caller.setNamespaces(fields[0]); err != nil {
			return entry{}, err
		}
		fields = fields[1:]
	}
	var seen []string
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		switch set := attributes[name]; {
		case !attributeForm().MatchString(field):
			return entry{}, errors.New("expected TOKEN or TOKEN NAMESPACE,NAMESPACE without spaces, then attributes such as may=commands,approve")
		case set == nil:
			return entry{}, fmt.Errorf("unknown attribute: expected %s", attributeNames)
		case slices.Contains(seen, name):
			return entry{}, fmt.Errorf("duplicate %s=", name)
		default:
			if err := set(&e.caller, value); err != nil {
				return entry{}, fmt.Errorf("%s=: %w", name, err)
			}
		}
		seen = append(seen, name)
	}
	if err := e.caller.contradiction(); err != nil {
		return entry{}, err
	}
	if e.caller.Name == "" {
		e.caller.Name = "token-" + hex.EncodeToString(e.digest[:4])
	}
	return e, nil
}

// contradiction returns an error for attributes of which one permits what another one refuses:
// scripts are models, so both the right and the provider are necessary.
func (c *Caller) contradiction() error {
	if c.Providers == nil {
		return nil
	}
	i := slices.IndexFunc(c.Providers, func(p string) bool { return slices.Contains(scripted, p) })
	switch {
	case i >= 0 && !c.has(Scripts):
		return fmt.Errorf("providers=: %s contradicts may=, which leaves out %s: add it there, or remove the provider", c.Providers[i], Scripts)
	case i < 0 && c.Rights != nil && c.has(Scripts):
		return fmt.Errorf("may=: %s contradicts providers=, which has neither %s: add one there, or remove the right", Scripts, strings.Join(scripted, " nor "))
	}
	return nil
}

func (c *Caller) setNamespaces(value string) error {
	if value == all {
		return nil
	}
	c.Namespaces = strings.Split(value, ",")
	for _, ns := range c.Namespaces {
		// The value is not shown, and text that looks like a token is refused: in a line
		// whose columns were swapped it is one.
		if !runlog.Name.MatchString(ns) || hexToken().MatchString(ns) {
			return errors.New("the text after the token is not a namespace: expected letters, digits, - and _, at most 64, and not 32 or more hexadecimal digits")
		}
	}
	return nil
}

// attributeNames lists the attributes for errors.
const attributeNames = "name=, roots=, providers=, may=, tier=, entitlements=, runs=, bytes=, starts= or watchers="

// attributes sets each attribute of a line.
var attributes = map[string]func(*Caller, string) error{
	"name": func(c *Caller, value string) (err error) {
		if value == Local || value == Anonymous {
			return fmt.Errorf("%s is the name of callers without a token of a file in records: choose another one", value)
		}
		c.Name, err = nameOf(value)
		return err
	},
	"tier": func(c *Caller, value string) (err error) {
		c.Tier, err = nameOf(value)
		return err
	},
	"entitlements": func(c *Caller, value string) (err error) {
		c.Entitlements, err = namesOf(value)
		return err
	},
	"providers": func(c *Caller, value string) (err error) {
		c.Providers, err = namesOf(value)
		return err
	},
	"roots": (*Caller).setRoots,
	"may":   (*Caller).setRights,

	"runs":     setQuota(func(q *Quotas) *int { return &q.Runs }),
	"bytes":    setQuota(func(q *Quotas) *int { return &q.Bytes }),
	"starts":   setQuota(func(q *Quotas) *int { return &q.Starts }),
	"watchers": setQuota(func(q *Quotas) *int { return &q.Watchers }),
}

func (c *Caller) setRoots(value string) error {
	for root := range strings.SplitSeq(value, ",") {
		if !filepath.IsAbs(root) {
			return errors.New("expected absolute paths of folders, separated by commas and without spaces")
		}
		root = filepath.Clean(root)
		switch {
		case root == string(filepath.Separator):
			return errors.New("/ has every folder, and bounds nothing: leave roots= out")
		case slices.Contains(c.Roots, root):
			return errors.New("duplicate folder")
		}
		c.Roots = append(c.Roots, root)
	}
	return nil
}

func (c *Caller) setRights(value string) error {
	c.Rights = []Right{}
	if value == noRights {
		return nil
	}
	for name := range strings.SplitSeq(value, ",") {
		switch right := Right(name); {
		case !slices.Contains(allRights, right):
			return fmt.Errorf("expected some of %s, separated by commas, or %s", rightNames(), noRights)
		case slices.Contains(c.Rights, right):
			return fmt.Errorf("duplicate %s", right)
		default:
			c.Rights = append(c.Rights, right)
		}
	}
	return nil
}

func rightNames() string {
	var names []string
	for _, r := range allRights {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// namesOf parses a list of names.
func namesOf(value string) ([]string, error) {
	var names []string
	for part := range strings.SplitSeq(value, ",") {
		name, err := nameOf(part)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, errors.New("duplicate value")
		}
		names = append(names, name)
	}
	return names, nil
}

func nameOf(value string) (string, error) {
	if !runlog.Name.MatchString(value) || hexToken().MatchString(value) {
		return "", errors.New("expected letters, digits, - and _, at most 64, and not 32 or more hexadecimal digits; several are separated by commas")
	}
	return value, nil
}
