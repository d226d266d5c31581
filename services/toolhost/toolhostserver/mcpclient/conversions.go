package mcpclient

import (
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/tool/dialect"
)

// maxConversions bounds the texts of the schemas whose conversions are kept, in bytes.
const maxConversions = 4 << 20

// conversions are those of the schemas of tools that were called, by the texts of the schemas. It
// is safe for concurrent use.
type conversions struct {
	mu   sync.Mutex
	all  map[string]*dialect.Conversion
	size int
}

// original returns the arguments as the schema of the server has them, or why they do not fit it.
func (k *conversions) original(definition, arguments string) (string, error) {
	converted, err := k.get(definition)
	if err != nil {
		return "", err
	}
	return converted.Original(strings.TrimSpace(arguments))
}

// get returns the conversion of a schema.
func (k *conversions) get(definition string) (*dialect.Conversion, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if converted := k.all[definition]; converted != nil {
		return converted, nil
	}
	converted, err := dialect.Convert(definition)
	if err != nil {
		return nil, err
	}
	if k.all == nil || k.size+len(definition) > maxConversions {
		k.all, k.size = map[string]*dialect.Conversion{}, 0
	}
	k.all[strings.Clone(definition)] = converted
	k.size += len(definition)
	return converted, nil
}
