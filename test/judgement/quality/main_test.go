// Package quality checks what judging work promises against the shipped binary: what is
// classified, planned, required, verified, retried and delivered, with a strict model server
// that records every request.
package quality

import (
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"
)

func TestMain(m *testing.M) { os.Exit(live.Main(m)) }
