// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates.
type CA struct {
	// File has its certificate, PEM.
	File string

	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes a CA.
func New(tb testing.TB) *CA {
	tb.Helper()
	ca := &CA{File: filepath.Join(tb.TempDir(), "ca.crt"), tb: tb}
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: "CA of " + tb.Name()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	ca.key = newKey(tb)
	der, err := x509.CreateCertificate(rand.Reader, template, template, ca.key.Public(), ca.key)
	if err != nil {
		tb.Fatal(err)
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	write(tb, ca.File, "CERTIFICATE", der)
	return ca
}

// Pool trusts it alone.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Pair are the files of a certificate.
type Pair struct{ Cert, Key string }

// Issue makes a certificate for hosts, names or IP addresses, that is good for
// clients and servers. changes are made to it before it is signed.
func (ca *CA) Issue(hosts []string, changes ...func(*x509.Certificate)) Pair {
	ca.tb.Helper()
	dir := ca.tb.TempDir()
	p := Pair{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	ca.Reissue(p, hosts, changes...)
	return p
}

// Reissue puts a new certificate into the files of one.
func (ca *CA) Reissue(p Pair, hosts []string, changes ...func(*x509.Certificate)) {
	ca.tb.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(ca.tb), Subject: pkix.Name{CommonName: "harness"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	for _, change := range changes {
		change(template)
	}
	key := newKey(ca.tb)
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		ca.tb.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.tb.Fatal(err)
	}
	write(ca.tb, p.Cert, "CERTIFICATE", der)
	write(ca.tb, p.Key, "PRIVATE KEY", raw)
}

// Role adds the URI of a role to it.
func Role(role string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.URIs = append(c.URIs, &url.URL{Scheme: "harness", Host: "role", Path: "/" + role})
	}
}

// Expired makes it one that was good until a minute ago.
func Expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

// NotYet makes it one that is good from tomorrow on.
func NotYet(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(24*time.Hour), time.Now().Add(48*time.Hour)
}

// ServerOnly makes it one that a client may not use.
func ServerOnly(c *x509.Certificate) {
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func serial(tb testing.TB) *big.Int {
	tb.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func write(tb testing.TB, path, kind string, der []byte) {
	tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}
}
