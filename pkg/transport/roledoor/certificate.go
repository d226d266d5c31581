package roledoor

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
)

// uri begins the URI of a certificate that names a role: harness://role/turn. A process
// with several roles has a certificate with a URI for each.
const (
	uriScheme = "harness"
	uriHost   = "role"
	uri       = uriScheme + "://" + uriHost + "/"
)

// URI returns the subject alternative name of a certificate for a role.
func URI(role string) string { return uri + role }

// Roles returns the roles that a certificate names, sorted; none for a certificate without
// roles.
func Roles(cert *x509.Certificate) []string {
	var roles []string
	for _, u := range cert.URIs {
		if strings.EqualFold(u.Scheme, uriScheme) && strings.EqualFold(u.Host, uriHost) {
			roles = append(roles, strings.TrimPrefix(u.Path, "/"))
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

// CheckServer returns an error if the certificate of a process names roles and not the one
// that is called there.
func CheckServer(cert *x509.Certificate, role string) error {
	if roles := Roles(cert); roles != nil && !slices.Contains(roles, role) {
		return fmt.Errorf("the certificate is for the role %s and not for %s: give that process a certificate with the URI %s", strings.Join(roles, ", "), role, URI(role))
	}
	return nil
}

// CheckOwn returns an error if a certificate names roles and not all of those that its
// process serves.
func CheckOwn(cert *x509.Certificate, serves []string) error {
	roles := Roles(cert)
	if roles == nil {
		return nil
	}
	for _, role := range serves {
		if !slices.Contains(roles, role) {
			return fmt.Errorf("the certificate is for the role %s, and this process serves %s too: use a certificate with the URI %s", strings.Join(roles, ", "), role, URI(role))
		}
	}
	return nil
}
