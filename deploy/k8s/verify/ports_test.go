package verify

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (r *rendering) service(name string) (*corev1.Service, bool) {
	for _, s := range r.services {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// has reports whether a pod has a port, by number or by name.
func (w workload) has(port intstr.IntOrString) bool {
	for _, c := range w.pod.Spec.Containers {
		for _, p := range c.Ports {
			if port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal {
				return true
			}
		}
	}
	return false
}

func peers(p *networkingv1.NetworkPolicy) (all []networkingv1.NetworkPolicyPeer) {
	for _, rule := range p.Spec.Ingress {
		all = append(all, rule.From...)
	}
	for _, rule := range p.Spec.Egress {
		all = append(all, rule.To...)
	}
	return all
}

// checkPorts finds references to ports that no container has.
func checkPorts(r *rendering) (found []string) {
	want := func(who string, s *metav1.LabelSelector, port intstr.IntOrString) {
		names, _ := r.selected(s) // checkSelectors reports its faults
		for _, name := range names {
			if !r.workload(name).has(port) {
				found = append(found, fmt.Sprintf("%s: %s has no port %s", who, name, port.String()))
			}
		}
	}
	for _, s := range r.services {
		for _, p := range s.Spec.Ports {
			want("service "+s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector}, p.TargetPort)
		}
	}
	for _, w := range r.workloads() {
		for _, c := range w.pod.Spec.Containers {
			for kind, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
				port, ok := probePort(probe)
				if !ok && w.selector != nil {
					found = append(found, fmt.Sprintf("%s has no %s probe", w.name, kind))
				}
				if ok && !w.has(port) {
					found = append(found, fmt.Sprintf("the %s probe of %s: no port %s", kind, w.name, port.String()))
				}
			}
		}
	}
	for _, p := range r.policies {
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				want("policy "+p.Name, &p.Spec.PodSelector, *port.Port)
			}
		}
		for _, rule := range p.Spec.Egress {
			for _, peer := range rule.To {
				if peer.PodSelector == nil || peer.NamespaceSelector != nil {
					continue
				}
				for _, port := range rule.Ports {
					want("policy "+p.Name, peer.PodSelector, *port.Port)
				}
			}
		}
	}
	for _, m := range r.podMonitors {
		for _, e := range m.Spec.PodMetricsEndpoints {
			want("pod monitor "+m.Name, &m.Spec.Selector, intstr.FromString(e.Port))
		}
	}
	return append(found, checkListening(r)...)
}

func probePort(p *corev1.Probe) (intstr.IntOrString, bool) {
	switch {
	case p == nil:
		return intstr.IntOrString{}, false
	case p.GRPC != nil:
		return intstr.FromInt32(p.GRPC.Port), true
	case p.HTTPGet != nil:
		return p.HTTPGet.Port, true
	}
	return intstr.IntOrString{}, false
}

// checkListening compares the ports of containers with the listen addresses in the
// arguments of their processes.
func checkListening(r *rendering) (found []string) {
	data := r.config("harness")
	for name, variable := range map[string]string{"grpc": "HARNESS_LISTEN", "probe": "HARNESS_PROBE", "metrics": "HARNESS_METRICS"} {
		host, port, err := net.SplitHostPort(data[variable])
		if err != nil || host != "0.0.0.0" {
			found = append(found, fmt.Sprintf("%s=%q is no address that pods can be reached at", variable, data[variable]))
		}
		for _, w := range r.roles() {
			if !slices.ContainsFunc(w.main().Ports, func(p corev1.ContainerPort) bool {
				return p.Name == name && strconv.Itoa(int(p.ContainerPort)) == port
			}) {
				found = append(found, fmt.Sprintf("%s listens on %s, which is not its port %s", w.name, data[variable], name))
			}
		}
	}
	return found
}

// roles are the workloads that run harness serve.
func (r *rendering) roles() []workload {
	return slices.DeleteFunc(r.workloads(), func(w workload) bool { return w.pod.Labels["harnessmesh.io/workload"] != "role" })
}
