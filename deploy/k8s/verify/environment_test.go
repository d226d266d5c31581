package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// setting is a variable of a container's environment.
type setting struct{ name, value string }

// environment returns the environment of a container as the kubelet makes it: a
// reference is replaced only by a variable that precedes it.
func (r *rendering) environment(c corev1.Container, secret func(name, key string) string, field func(path string) string) (all []setting, err error) {
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil {
			data, ok := r.configNamed(e.ConfigMapRef.Name)
			if !ok {
				return nil, fmt.Errorf("the configuration %s does not exist", e.ConfigMapRef.Name)
			}
			for _, name := range slices.Sorted(maps.Keys(data)) {
				all = append(all, setting{name, data[name]})
			}
		}
	}
	for _, e := range c.Env {
		value := e.Value
		for _, before := range all {
			value = strings.ReplaceAll(value, "$("+before.name+")", before.value)
		}
		switch from := e.ValueFrom; {
		case from == nil:
		case from.SecretKeyRef != nil:
			value = secret(from.SecretKeyRef.Name, from.SecretKeyRef.Key)
		case from.FieldRef != nil:
			value = field(from.FieldRef.FieldPath)
		default:
			return nil, fmt.Errorf("%s comes from a source that these tests do not support", e.Name)
		}
		if strings.Contains(value, "$(") {
			return nil, fmt.Errorf("%s=%s refers to a variable that does not precede it", e.Name, value)
		}
		all = append(all, setting{e.Name, value})
	}
	return all, nil
}

// unknown returns the variables and arguments of a rendering that the program does
// not know. A variable of the program is HARNESS_ and the name of a flag; another one
// must be a name that is in the binary.
func (p *program) unknown(r *rendering) (found []string) {
	own := []string{"POD_IP", "NATS_PASSWORD"} // for other variables of the same container
	for _, w := range r.workloads() {
		if w.name == "nats" {
			continue
		}
		c := w.main()
		if len(c.Command) != 0 || len(c.Args) == 0 {
			found = append(found, w.name+" does not start the program of its image with a verb")
			continue
		}
		verb := c.Args[0]
		for _, arg := range c.Args[1:] {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if !slices.Contains(p.flags[verb], name) {
				found = append(found, fmt.Sprintf("%s: harness %s has no flag --%s", w.name, verb, name))
			}
		}
		all, err := r.environment(c, func(string, string) string { return "x" }, func(string) string { return "x" })
		if err != nil {
			found = append(found, w.name+": "+err.Error())
		}
		for _, e := range all {
			if flag, ok := strings.CutPrefix(e.name, "HARNESS_"); ok {
				flag = strings.ReplaceAll(strings.ToLower(flag), "_", "-")
				if !slices.Contains(p.flags[verb], flag) {
					found = append(found, fmt.Sprintf("%s: %s is no flag of harness %s", w.name, e.name, verb))
				}
				continue
			}
			if !slices.Contains(own, e.name) && e.name != "HOME" && !strings.Contains(p.text, e.name) {
				found = append(found, fmt.Sprintf("%s: nothing in the program reads %s", w.name, e.name))
			}
		}
	}
	return found
}

func TestEveryVariableAndArgumentIsKnownToTheProgram(t *testing.T) {
	p := binary(t)
	for _, overlay := range []string{"dev", "prod", "prod-keda", "everything", "traces"} {
		r, err := decode(rendered(t, overlay))
		if err != nil {
			t.Fatal(err)
		}
		for _, flaw := range p.unknown(r) {
			t.Errorf("%s: %s", overlay, flaw)
		}
	}
}

func TestAMisspeltVariableOrArgumentIsFound(t *testing.T) {
	p := binary(t)
	text := rendered(t, "prod")
	for _, c := range []struct{ old, new, want string }{
		{"HARNESS_DATA:", "HARNESS_DATE:", "HARNESS_DATE is no flag of harness serve"},
		{"HARNESS_REPLICAS:", "HARNESS_DRAIN:", "HARNESS_DRAIN is no flag of harness provision"},
		{"--drain=60s", "--drian=60s", "harness serve has no flag --drian"},
		{"name: OPENAI_API_KEY", "name: OPENAI_KEY", "nothing in the program reads OPENAI_KEY"},
		{"$(POD_IP)", "$(POD_IPS)", "refers to a variable that does not precede it"},
	} {
		broken, err := decode(strings.Replace(text, c.old, c.new, 1))
		if err != nil {
			t.Fatal(err)
		}
		if flaws := strings.Join(p.unknown(broken), "\n"); !strings.Contains(flaws, c.want) {
			t.Errorf("%s: got %q, want %q among it", c.new, flaws, c.want)
		}
	}
}
