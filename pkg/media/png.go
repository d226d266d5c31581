package media

import (
	"encoding/binary"
	"hash/crc32"
)

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

// undamagedPNG returns an image without the chunks that a decoder can do without and whose checksum
// is wrong; data itself if there are none. Whether such a chunk is damaged does not matter for the
// pixels, but the decoder refuses it.
func undamagedPNG(data []byte) []byte {
	var clean []byte
	kept := 0 // data[:kept] is in clean, or is left out of it
	for at := pngSignature; len(data)-at >= pngFrame; {
		n := uint64(binary.BigEndian.Uint32(data[at:])) + pngFrame
		if n > uint64(len(data)-at) { //nolint:gosec // not negative
			break
		}
		end := at + int(n)                //nolint:gosec // at most len(data)
		ancillary := data[at+4]&0x20 != 0 // in lower case
		if ancillary && crc32.ChecksumIEEE(data[at+4:end-4]) != binary.BigEndian.Uint32(data[end-4:]) {
			clean = append(clean, data[kept:at]...)
			kept = end
		}
		if string(data[at+4:at+8]) == "IEND" {
			break
		}
		at = end
	}
	if kept == 0 {
		return data
	}
	return append(clean, data[kept:]...)
}
