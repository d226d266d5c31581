package vocabulary

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// maxLine is a length that no line exceeds, in bytes.
const maxLine = 256

// Lines returns the loader's file of an encoding, such as o200k_base.
func Lines(encoding string) (*io.SectionReader, error) {
	file, err := assets.Assets.Open(encoding + ".tiktoken")
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	lines, ok := file.(io.ReaderAt) // as package embed promises
	if !ok {
		return nil, fmt.Errorf("%s cannot be read at a place", info.Name())
	}
	return io.NewSectionReader(lines, 0, info.Size()), nil
}

// parseLine returns the token and the rank of the line that data begins with. The token
// is stored in the array.
func parseLine(data []byte, into *[maxLine]byte) (token []byte, rank uint32, err error) {
	line, _, whole := bytes.Cut(data, []byte{'\n'})
	text, number, found := bytes.Cut(line, []byte{' '})
	if !whole || !found || len(line) >= maxLine {
		return nil, 0, fmt.Errorf("line %.*q must be a token in base64 and its rank, of less than %d bytes", maxLine, line, maxLine)
	}
	n, err := base64.StdEncoding.Decode(into[:], text)
	if err != nil {
		return nil, 0, fmt.Errorf("line %q: %w", line, err)
	}
	r, err := strconv.ParseUint(string(number), 10, rankBits)
	if err != nil {
		return nil, 0, fmt.Errorf("line %q: %w", line, err)
	}
	return into[:n], uint32(r), nil
}
