package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// checkSecurity finds what the restricted pod security standard refuses, and what
// these manifests promise beyond it: no token, nothing writable but volumes.
func checkSecurity(r *rendering) (found []string) {
	if len(r.namespaces) != 1 || r.namespaces[0].Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		found = append(found, "the namespace does not enforce the restricted standard")
	}
	for _, w := range r.workloads() {
		spec := w.pod.Spec
		flaw := func(wrong bool, what string) {
			if wrong {
				found = append(found, w.name+": "+what)
			}
		}
		flaw(spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken, "mounts a service account's token")
		flaw(spec.HostNetwork || spec.HostPID || spec.HostIPC, "shares a namespace of its node")
		pod := spec.SecurityContext
		if pod == nil {
			pod = &corev1.PodSecurityContext{}
		}
		flaw(pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.RunAsUser == nil || *pod.RunAsUser == 0, "may run as root")
		flaw(pod.SeccompProfile == nil || pod.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault, "has no seccomp profile")
		for _, c := range w.containers() {
			s := c.SecurityContext
			if s == nil {
				s = &corev1.SecurityContext{}
			}
			flaw(slices.Contains(c.Args, "--roles=toolhost") && !slices.Contains(c.Args, "--sandbox-least=kernel"), c.Name+" may run commands without a sandbox")
			flaw(s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, c.Name+" may gain privileges")
			flaw(s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem, c.Name+" may write to its root file system")
			flaw(s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) != 0, c.Name+" keeps capabilities")
			flaw(s.Privileged != nil && *s.Privileged || s.RunAsUser != nil && *s.RunAsUser == 0, c.Name+" is privileged")
		}
		for _, v := range spec.Volumes {
			flaw(v.HostPath != nil, "mounts "+v.Name+" from its node")
		}
	}
	return found
}

// checkImages finds images whose content may change under their name, and programs
// in the wrong one.
func checkImages(r *rendering) (found []string) {
	for _, w := range r.workloads() {
		for _, c := range w.containers() {
			name, tag, ok := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":")
			if !ok || tag == "" || tag == "latest" {
				found = append(found, fmt.Sprintf("%s: the image %s is not pinned", w.name, c.Image))
			}
			want := "harness"
			switch w.name {
			case "nats", "toolhost":
				want = map[string]string{"nats": "nats", "toolhost": "harness-toolhost"}[w.name]
			}
			if name != want {
				found = append(found, fmt.Sprintf("%s runs the image %s and not %s", w.name, name, want))
			}
		}
	}
	return found
}

// stopTime is what a role takes to stop in order, after its drain.
const stopTime = 5 * time.Second

// heartbeat is the longest pause between two signs of life of a step in work, with
// the default takeover time.
const heartbeat = time.Second

// checkGrace finds pods that are killed before they have stopped in order.
func checkGrace(r *rendering) (found []string) {
	for _, w := range r.roles() {
		drain, err := time.ParseDuration(flagValue(w, "--drain="))
		if err != nil {
			found = append(found, w.name+" has no --drain")
			continue
		}
		need := drain + stopTime
		if l := w.main().Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Sleep != nil {
			need += time.Duration(l.PreStop.Sleep.Seconds) * time.Second
		}
		if w.grace() < need {
			found = append(found, fmt.Sprintf("%s has %s to end and needs %s", w.name, w.grace(), need))
		}
		if drain <= heartbeat {
			found = append(found, fmt.Sprintf("%s drains for %s, shorter than a heartbeat", w.name, drain))
		}
	}
	return found
}

func (w workload) grace() time.Duration {
	if s := w.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 30 * time.Second
}

// flagValue is what follows a flag among the arguments of a workload.
func flagValue(w workload, flag string) string {
	for _, arg := range w.main().Args {
		if value, ok := strings.CutPrefix(arg, flag); ok {
			return value
		}
	}
	return ""
}

// checkResources finds containers without resource requests, and volumes in memory or
// on the node without a size limit.
func checkResources(r *rendering) (found []string) {
	for _, w := range r.workloads() {
		for _, c := range w.containers() {
			for _, need := range []struct {
				what  string
				there bool
			}{
				{"request of CPU", !c.Resources.Requests.Cpu().IsZero()},
				{"request of memory", !c.Resources.Requests.Memory().IsZero()},
				{"limit of memory", !c.Resources.Limits.Memory().IsZero()},
			} {
				if !need.there {
					found = append(found, fmt.Sprintf("%s: %s has no %s", w.name, c.Name, need.what))
				}
			}
		}
		for _, v := range w.pod.Spec.Volumes {
			if v.EmptyDir != nil && v.EmptyDir.SizeLimit == nil {
				found = append(found, fmt.Sprintf("%s: the volume %s has no bound", w.name, v.Name))
			}
		}
	}
	return found
}

// checkVolumes finds mounts of volumes that do not exist, and volumes that no
// container mounts.
func checkVolumes(r *rendering) (found []string) {
	for _, w := range r.workloads() {
		there, used := map[string]bool{}, map[string]bool{}
		for _, v := range w.pod.Spec.Volumes {
			there[v.Name] = true
		}
		for _, c := range w.claims {
			there[c.Name] = true
		}
		for _, c := range w.containers() {
			for _, m := range c.VolumeMounts {
				used[m.Name] = true
				if !there[m.Name] {
					found = append(found, fmt.Sprintf("%s mounts the volume %s, which is not there", w.name, m.Name))
				}
			}
		}
		for name := range there {
			if !used[name] {
				found = append(found, fmt.Sprintf("%s has the volume %s and mounts it nowhere", w.name, name))
			}
		}
	}
	return found
}
