package executor

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}
