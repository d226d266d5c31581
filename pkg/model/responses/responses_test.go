package responses_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func provider(t *testing.T, s *modeltest.Server) *responses.Provider {
	t.Helper()
	return configured(t, s, responses.Config{})
}

// configured returns a provider for the server with other settings.
func configured(t *testing.T, s *modeltest.Server, cfg responses.Config) *responses.Provider {
	t.Helper()
	cfg.BaseURL, cfg.HTTPClient = s.BaseURL(), s.Client()
	if cfg.APIKey == "" {
		cfg.APIKey = s.Key
	}
	p, err := responses.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSuite(t *testing.T) {
	modeltest.Suite(t, func(t *testing.T, replies ...modeltest.Reply) model.Provider {
		return provider(t, modeltest.NewServer(t, replies...))
	})
}

func TestWindow(t *testing.T) {
	modeltest.WindowSuite(t, func(t *testing.T) (*modeltest.Server, model.Provider) {
		s := modeltest.NewServer(t, modeltest.Reply{Text: "ok"})
		return s, provider(t, s)
	}, false)
}

// lenient starts a server that takes any request and stores its body, and returns its
// address and a provider for it.
func lenient(t *testing.T, body *[]byte) (base string, p *responses.Provider) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*body = raw
		_, _ = io.WriteString(w, `{"status":"completed","model":"m","output":[]}`)
	}))
	t.Cleanup(s.Close)
	p, err := responses.New(responses.Config{Endpoint: adapter.Endpoint{BaseURL: s.URL + "/v1", HTTPClient: s.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	return s.URL + "/v1", p
}
