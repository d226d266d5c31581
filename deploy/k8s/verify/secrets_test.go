package verify

import (
	"fmt"
	"slices"
	"strings"
)

// checkSecrets finds secrets where they are not needed, and configuration that does
// not exist. This is the one list of the secrets that each role may have.
func checkSecrets(r *rendering) (found []string) {
	for _, w := range r.workloads() {
		allowed := []string{"tls-" + w.name, "nats-" + w.name}
		switch w.name {
		case "turn", "inference":
			allowed = append(allowed, "provider-keys")
		case "gateway":
			allowed = append(allowed, "gateway-tokens", "input-key")
		case "repair":
			allowed = append(allowed, "input-key")
		case "nats":
			allowed = []string{"tls-nats", "nats-passwords"}
		case "provision":
			allowed = []string{"nats-provision", "tls-nats/ca.crt"}
		}
		for _, s := range w.secrets() {
			if !slices.Contains(allowed, s) {
				found = append(found, fmt.Sprintf("%s has the secret %s, which it does not need", w.name, s))
			}
		}
		for _, c := range w.configs() {
			if _, ok := r.configNamed(c); !ok {
				found = append(found, fmt.Sprintf("%s uses the configuration %s, which is not there", w.name, c))
			}
		}
	}
	return found
}

// secrets are the names of those that a pod gets; with only one item of a secret,
// NAME/ITEM.
func (w workload) secrets() (names []string) {
	for _, c := range w.containers() {
		for _, e := range c.EnvFrom {
			if e.SecretRef != nil {
				names = append(names, e.SecretRef.Name)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				names = append(names, e.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
	for _, v := range w.pod.Spec.Volumes {
		if v.Secret != nil {
			name := v.Secret.SecretName
			if len(v.Secret.Items) == 1 {
				name += "/" + v.Secret.Items[0].Key
			}
			names = append(names, name)
		}
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.Secret != nil {
					names = append(names, s.Secret.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// configs are the names of the ConfigMaps that a pod uses.
func (w workload) configs() (names []string) {
	for _, c := range w.containers() {
		for _, e := range c.EnvFrom {
			if e.ConfigMapRef != nil {
				names = append(names, e.ConfigMapRef.Name)
			}
		}
	}
	for _, v := range w.pod.Spec.Volumes {
		if v.ConfigMap != nil {
			names = append(names, v.ConfigMap.Name)
		}
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					names = append(names, s.ConfigMap.Name)
				}
			}
		}
	}
	return names
}

// roleURI begins the URI of a certificate that names a role (docs/security.md).
const roleURI = "harness://role/"

// checkCertificates finds certificates that do not name their role, secrets of
// certificates that cert-manager does not issue, in overlays where it issues any, and
// certificates that no pod uses.
func checkCertificates(r *rendering) (found []string) {
	if len(r.certificates) == 0 {
		return nil
	}
	made, used := map[string]bool{}, map[string]bool{}
	for _, i := range r.issuers {
		if i.Spec.CA != nil {
			used[i.Spec.CA.SecretName] = true
		}
	}
	for _, c := range r.certificates {
		made[c.Spec.SecretName] = true
		role, ofPod := strings.CutPrefix(c.Spec.SecretName, "tls-")
		if want := []string{roleURI + role}; ofPod && role != "nats" && !slices.Equal(c.Spec.URIs, want) {
			found = append(found, fmt.Sprintf("certificate %s has the URIs %q and not %q", c.Name, c.Spec.URIs, want))
		}
		if !slices.ContainsFunc(r.issuers, func(i *issuer) bool { return i.Name == c.Spec.IssuerRef.Name && i.Kind == c.Spec.IssuerRef.Kind }) {
			found = append(found, fmt.Sprintf("certificate %s: its issuer %s is not there", c.Name, c.Spec.IssuerRef.Name))
		}
	}
	for _, w := range r.workloads() {
		for _, s := range w.secrets() {
			name, _, _ := strings.Cut(s, "/")
			if strings.HasPrefix(name, "tls-") {
				used[name] = true
				if !made[name] {
					found = append(found, fmt.Sprintf("%s uses %s, and no certificate makes it", w.name, name))
				}
			}
		}
	}
	for name := range made {
		if !used[name] {
			found = append(found, fmt.Sprintf("the certificate in %s is used by nobody", name))
		}
	}
	return found
}
