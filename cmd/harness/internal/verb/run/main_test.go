package run_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestMain(m *testing.M) { harnesstest.Main(m) }
