// Package sandbox decides at which level the commands of a run are confined, and whether they
// ask. It checks the configuration. services/toolhost/confinement decides what a command can
// reach at a level.
package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Short names of the levels.
const (
	Auto   = harnessv1.SandboxLevel_SANDBOX_LEVEL_UNSPECIFIED
	Off    = harnessv1.SandboxLevel_SANDBOX_LEVEL_OFF
	Kernel = harnessv1.SandboxLevel_SANDBOX_LEVEL_KERNEL
	Full   = harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL
)

// Name returns the name of a level in files, flags and events.
func Name(level harnessv1.SandboxLevel) string {
	switch level {
	case Off:
		return "off"
	case Kernel:
		return "kernel"
	case Full:
		return "full"
	default:
		return "auto"
	}
}

// Parse returns the level with a name: auto, full, kernel or off.
func Parse(name string) (harnessv1.SandboxLevel, error) {
	for _, level := range []harnessv1.SandboxLevel{Auto, Off, Kernel, Full} {
		if name == Name(level) {
			return level, nil
		}
	}
	return Auto, fmt.Errorf("unknown level %q: expected auto, full, kernel or off", name)
}

// Least is the level below which nothing runs, and its source.
type Least struct {
	Level harnessv1.SandboxLevel
	// OfRun: the run demands it, which was started with a token, and the operator of the tool
	// host demands less.
	OfRun bool
}

// LeastOf returns the stricter of the least that the operator of a host allows and that of a run.
// A level that this program does not know is above all others, so nothing runs.
func LeastOf(host *harnessv1.SandboxSupport, c *harnessv1.SandboxConfig) Least {
	of := max(host.GetLeast(), c.GetLeast())
	return Least{Level: of, OfRun: of > max(host.GetLeast(), Off)}
}

// Demander returns the operator that demands the level, for errors.
func (l Least) Demander() string {
	if l.OfRun {
		return "the operator of the gateway, for runs that are started with a token,"
	}
	return "the operator of the tool host"
}

// Choose returns the level at which the commands of a run are executed on a host: the
// highest that works, unless the run wants off and the operators allow it. The error is a
// *fault.FieldError: the host is below the level that the run or an operator demands, or the run
// needs a feature that only a higher level has.
func Choose(host *harnessv1.SandboxSupport, c *harnessv1.SandboxConfig) (harnessv1.SandboxLevel, error) {
	level, least := max(host.GetLevel(), Off), LeastOf(host, c)
	wanted := c.GetLevel()
	switch {
	case wanted == Off && least.Level <= Off:
		level = Off
	case wanted == Off:
		return Auto, fault.Invalid("sandbox.level", "off is below %s, the least that %s allows", Name(least.Level), least.Demander())
	case level < least.Level && least.OfRun:
		return Auto, fault.Invalid("sandbox.level", "the tool host reaches only %s, and %s demands %s: %s", Name(level), least.Demander(), Name(least.Level), host.GetReason())
	case level < least.Level:
		return Auto, fault.Invalid("sandbox.level", "the tool host reaches only %s, and its operator demands %s: %s", Name(level), Name(least.Level), host.GetReason())
	case level < wanted:
		return Auto, fault.Invalid("sandbox.level", "the tool host reaches only %s, not %s: %s", Name(level), Name(wanted), host.GetReason())
	case wanted != Auto && wanted < level:
		level = max(wanted, least.Level)
	}
	if level < Full && c.GetNetwork().GetMode() == networkHosts {
		return Auto, fault.Invalid("sandbox.network", "a network of named hosts needs the level full, and commands run at %s: %s", Name(level), host.GetReason())
	}
	if level < Full && len(c.GetHide()) > 0 {
		return Auto, fault.Invalid("sandbox.hide", "hidden paths need the level full, and commands run at %s: %s", Name(level), host.GetReason())
	}
	return level, nil
}

// Leaves returns the first field of a request by which something of its run is executed outside
// of the sandbox, or may be by a person's word in advance; empty if there is none.
func Leaves(spec *harnessv1.RunSpec) (field string) {
	switch box := spec.GetConfig().GetSandbox(); {
	case box.GetLevel() == Off:
		return "spec.config.sandbox.level"
	case box.GetUnconfined():
		return "spec.config.sandbox.unconfined"
	}
	for i, h := range spec.GetAgent().GetHooks() {
		if h.GetUnconfined() {
			return fmt.Sprintf("spec.agent.hooks[%d].unconfined", i)
		}
	}
	return ""
}

// Bounds of SandboxConfig.
const (
	maxPaths     = 64
	maxVariables = 64
	minFiles     = 64
	minMemory    = 16 << 20
	minProcesses = 16
)

// Validate checks a configuration for itself. The error is a *fault.FieldError.
func Validate(c *harnessv1.SandboxConfig) error {
	if harnessv1.SandboxLevel_name[int32(c.GetLevel())] == "" {
		return fault.Invalid("level", "unknown level %d: expected AUTO, OFF, KERNEL or FULL", c.GetLevel())
	}
	if err := validateNetwork(c.GetNetwork()); err != nil {
		return err
	}
	for _, list := range []struct {
		field string
		paths []string
	}{{"read", c.GetRead()}, {"write", c.GetWrite()}} {
		if err := validatePaths(list.field, list.paths, true); err != nil {
			return err
		}
	}
	if err := validatePaths("hide", c.GetHide(), false); err != nil {
		return err
	}
	for i, hidden := range c.GetHide() {
		for _, written := range c.GetWrite() {
			if filepath.IsAbs(hidden) && Within(written, hidden) {
				return fault.Invalid(fmt.Sprintf("hide[%d]", i), "%s hides %s, which write makes writable: leave out one of them", hidden, written)
			}
		}
	}
	if len(c.GetEnv()) > maxVariables {
		return fault.Invalid("env", "%d names exceed the limit of %d", len(c.GetEnv()), maxVariables)
	}
	for i, name := range c.GetEnv() {
		if name == "" || strings.ContainsAny(name, "=\x00 ") {
			return fault.Invalid(fmt.Sprintf("env[%d]", i), "%q is no name of a variable", name)
		}
	}
	return validateLimits(c.GetLimits())
}

func validatePaths(field string, paths []string, absolute bool) error {
	if len(paths) > maxPaths {
		return fault.Invalid(field, "%d paths exceed the limit of %d", len(paths), maxPaths)
	}
	for i, path := range paths {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case path == "" || strings.ContainsRune(path, 0):
			return fault.Invalid(at, "%q is no path", path)
		case absolute && !filepath.IsAbs(path):
			return fault.Invalid(at, "%s is relative: name an absolute path; the workspace is always readable and writable", path)
		case filepath.Clean(path) == "/":
			return fault.Invalid(at, "the root contains everything: name the folders that are needed")
		}
	}
	return nil
}

func validateLimits(l *harnessv1.SandboxLimits) error {
	switch {
	case l.GetOpenFiles() > 0 && l.GetOpenFiles() < minFiles:
		return fault.Invalid("limits.open_files", "%d is below %d", l.GetOpenFiles(), minFiles)
	case l.GetMemoryBytes() > 0 && l.GetMemoryBytes() < minMemory:
		return fault.Invalid("limits.memory_bytes", "%d is below %d, with which no shell starts", l.GetMemoryBytes(), minMemory)
	case l.GetProcesses() > 0 && l.GetProcesses() < minProcesses:
		return fault.Invalid("limits.processes", "%d is below %d", l.GetProcesses(), minProcesses)
	case l.GetCpu() != nil && (l.GetCpu().CheckValid() != nil || l.GetCpu().AsDuration() <= 0):
		return fault.Invalid("limits.cpu", "must be a duration above 0")
	}
	return nil
}

// Within reports whether path is folder or in it. Both are absolute and clean.
func Within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// Asks reports whether a command at a level asks before it runs, if no rule decides: only
// one that is confined completely, without network, does not.
func Asks(level harnessv1.SandboxLevel, c *harnessv1.SandboxConfig) bool {
	return level != Full || c.GetNetwork().GetMode() > networkNone
}
