package access

import (
	"context"
	"slices"
	"strconv"
)

// Caller is the holder of a token, with its rights. The zero value may do everything.
type Caller struct {
	// Name is for people and logs.
	Name string
	// Namespaces are those that the token is valid for; nil means all.
	Namespaces []string
	// Roots are folders; workspaces of runs must be within one of them. Nil means no
	// bound.
	Roots []string
	// Providers are those of the models that runs may use; nil means all.
	Providers []string
	// Rights are those of the caller's runs and of its answers; nil means all.
	Rights []Right
	// Tier and Entitlements have no effect here; runs that the caller starts have them.
	Tier         string
	Entitlements []string
	// Quotas bound the caller's use.
	Quotas Quotas

	key bool // presented the key of this machine
}

// Names of callers without a token of a file. No line may have them.
const (
	// Local are the callers on this machine: inside the process, at the local socket, at a
	// listener on loopback, and with the key.
	Local = "local"
	// Anonymous are callers from other machines of whom nothing is required.
	Anonymous = "anonymous"
)

// Right is something that a token permits in addition to starting, following and steering
// runs that only use files.
type Right string

const (
	// Commands: runs with run_command.
	Commands Right = "commands"
	// Hooks: runs with hooks that are commands.
	Hooks Right = "hooks"
	// Checks: runs with a contract whose outputs are checked by commands.
	Checks Right = "checks"
	// Scripts: runs with scripted or replayed models, which are files of the worker.
	Scripts Right = "scripts"
	// Approve: answers to approvals, and runs that need none by a person's word.
	Approve Right = "approve"
	// Prompts: changes of prompts and resets of profiles, which all runs of a namespace have.
	Prompts Right = "prompts"
)

// allRights lists the rights in the order of the documentation.
var allRights = []Right{Commands, Hooks, Checks, Scripts, Approve, Prompts}

// May reports whether the token is valid for a namespace.
func (c Caller) May(namespace string) bool {
	return c.Namespaces == nil || slices.Contains(c.Namespaces, namespace)
}

// has reports whether the token has a right.
func (c Caller) has(right Right) bool {
	return c.Rights == nil || slices.Contains(c.Rights, right)
}

// token reports whether the caller has a token of a file.
func (c Caller) token() bool {
	return c.Name != "" && c.Name != Local && c.Name != Anonymous && !c.key
}

// leaves reports whether runs of the caller may leave the sandbox: a command outside of it
// reaches more than Roots, and a person's word permits it.
func (c Caller) leaves() bool { return c.Roots == nil && c.has(Approve) }

func (c Caller) tokenValue() string {
	if c.leaves() {
		return tokenLeaves
	}
	return tokenBounded
}

func (c Caller) quotasValue() string {
	q := c.Quotas.orDefaults()
	return strconv.Itoa(q.Runs) + "," + strconv.Itoa(q.Bytes)
}

// TokenMay reports whether the caller of a context has presented a token with a right. A caller
// without a token has none.
func TokenMay(ctx context.Context, right Right) bool {
	c, found := ctx.Value(callerKey{}).(Caller)
	return found && c.token() && c.has(right)
}

type callerKey struct{}

func with(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// of returns the caller of a context; without a check every caller may do everything.
func of(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// IsPerson reports whether a caller, given by its name, is a local person, who names addresses
// for itself, and not the holder of a token.
func IsPerson(name string) bool { return name == Local || name == Anonymous || name == "" }
