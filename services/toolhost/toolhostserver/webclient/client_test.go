package webclient

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// TestCredentialsNeedHTTPS unless their host names a port.
func TestCredentialsNeedHTTPS(t *testing.T) {
	for host, want := range map[string]map[string]bool{
		"a.example":      {"https://a.example": true, "http://a.example": false, "https://a.example:80": false, "http://a.example:443": false, "https://b.a.example": false, "https://a.example.b": false},
		"a.example:8080": {"http://a.example:8080": true, "https://a.example:8080": true, "https://a.example": false},
		"*.a.example":    {"https://b.a.example": true, "https://a.example": false},
	} {
		for address, has := range want {
			c := &Client{Call: &harnessv1.WebCall{Web: &harnessv1.Web{Credentials: []*harnessv1.WebCredential{{Host: host, Headers: map[string]string{"Authorization": "x"}}}}}}
			_, site, err := webtool.ParseURL(address)
			if err != nil {
				t.Fatal(err)
			}
			if headers, err := c.credentials(site); err != nil || (len(headers) == 1) != has {
				t.Errorf("%s at %s: %v, %v", host, address, headers, err)
			}
		}
	}
}
