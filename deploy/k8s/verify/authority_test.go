package verify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"
)

var errLate = errors.New("it does not end")

// authority is the certificate authority of the mesh, as cert-manager would keep it.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
	text        string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	var raw []byte
	raw, a.key = sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "mesh-ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	a.certificate = certificate
	a.pool.AddCert(certificate)
	a.text = encode("CERTIFICATE", raw)
	return a
}

// issue makes the contents of a secret of kind kubernetes.io/tls. In addition to its
// names and URIs the certificate has loopback, where these tests reach it.
func (a *authority) issue(t *testing.T, names []string, uris ...string) map[string]string {
	t.Helper()
	var parsed []*url.URL
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, u)
	}
	raw, key := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, URIs: parsed, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"tls.crt": encode("CERTIFICATE", raw), "tls.key": encode("PRIVATE KEY", der), "ca.crt": a.text}
}

// mustName fails the test unless a certificate names a host.
func (a *authority) mustName(t *testing.T, text, host string) {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.VerifyHostname(host); err != nil {
		t.Errorf("the certificate of NATS: %v", err)
	}
}

func sign(t *testing.T, template *x509.Certificate, by *authority) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return raw, key
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
