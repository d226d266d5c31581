package responses_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/modeltest"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
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
