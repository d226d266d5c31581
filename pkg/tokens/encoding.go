package tokens

import (
	_ "embed"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/tokens/internal/vocabulary"
)

//go:generate go run ./internal/vocabulary/generate .

var (
	//go:embed o200k_base.index
	o200kIndex string
	//go:embed cl100k_base.index
	cl100kIndex string
)

// encoding is a vocabulary and the scanner that cuts texts into its pieces.
type encoding struct {
	// scan returns the length in bytes, at least 1, of the first piece of a
	// text that is valid and not empty.
	scan func(text string) int
	// ranks opens the vocabulary once.
	ranks func() *vocabulary.Vocabulary
}

var (
	o200k  = newEncoding("o200k_base", o200kIndex, scanO200k)
	cl100k = newEncoding("cl100k_base", cl100kIndex, scanCL100k)
)

func newEncoding(name, index string, scan func(string) int) *encoding {
	return &encoding{scan: scan, ranks: sync.OnceValue(func() *vocabulary.Vocabulary {
		lines, err := vocabulary.Lines(name)
		if err != nil {
			panic("tokens: " + err.Error())
		}
		v, err := vocabulary.Open(lines, index)
		if err != nil {
			panic("tokens: " + name + ": " + err.Error() + ": run make generate")
		}
		return v
	})}
}
