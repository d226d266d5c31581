package media

import "encoding/binary"

// pngChunks are those that a decoder needs; all others are metadata, or further frames.
var pngChunks = map[string]bool{"IHDR": true, "PLTE": true, "tRNS": true, "IDAT": true, "IEND": true}

const (
	pngSignature = 8
	// pngFrame is what a chunk has in addition to its data: length, type and checksum.
	pngFrame = 12
	// pngDepth is where the bits of a channel are, after the signature: in IHDR.
	pngDepth = 16
)

// cleanPNG returns an image of at most 8 bits a channel without metadata and without what
// follows its end; nil if it has to be encoded again. data has been decoded.
func cleanPNG(data []byte) []byte {
	clean := append(make([]byte, 0, len(data)), data[:pngSignature]...)
	rest := data[pngSignature:]
	if len(rest) <= pngDepth || rest[pngDepth] > 8 {
		return nil
	}
	for len(rest) >= pngFrame {
		n := uint64(binary.BigEndian.Uint32(rest)) + pngFrame
		if n > uint64(len(rest)) {
			return nil
		}
		kind := string(rest[4:8])
		if pngChunks[kind] {
			clean = append(clean, rest[:n]...)
		}
		if kind == "IEND" {
			return clean
		}
		rest = rest[n:]
	}
	return nil
}
