package quality

import (
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"
)

func TestMain(m *testing.M) { os.Exit(live.Main(m)) }
