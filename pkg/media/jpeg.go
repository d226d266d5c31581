package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// jpegInfo has the size and the orientation of a JPEG image, from its segments.
type jpegInfo struct {
	// orientation is 1 to 8, as in EXIF.
	orientation int
	// clean is the image without metadata and without what follows its end; nil if it
	// has to be encoded again, because it is not upright or has four channels.
	clean []byte
}

// maxScans bounds the passes over a progressive image. Each costs time for all pixels,
// however short its data are; encoders make about ten.
const maxScans = 100

// Markers of segments; the second byte, after 0xFF.
const (
	markerSOI   = 0xD8
	markerEOI   = 0xD9
	markerSOS   = 0xDA
	markerRST0  = 0xD0
	markerRST7  = 0xD7
	markerTEM   = 0x01
	markerAPP0  = 0xE0
	markerAPP1  = 0xE1
	markerAPP14 = 0xEE
	markerAPP15 = 0xEF
	markerCOM   = 0xFE
)

var errSegments = errors.New("unexpected end of its segments")

// readJPEG reads the segments of an image.
func readJPEG(data []byte) (jpegInfo, error) {
	info := jpegInfo{orientation: upright}
	clean := append(make([]byte, 0, len(data)), 0xFF, markerSOI)
	scans, channels := 0, 0
	for rest := data[2:]; ; {
		rest = rest[untilMarker(rest):]
		if len(rest) < 2 {
			return info, errSegments
		}
		marker := rest[1]
		if marker == markerEOI {
			break
		}
		n, ok := segmentLength(rest)
		if !ok {
			return info, errSegments
		}
		segment := rest[:n]
		switch {
		case isFrame(marker) && n >= 10:
			channels = int(segment[9])
		case marker == markerAPP1:
			if o := exifOrientation(segment[4:]); o != 0 {
				info.orientation = o
			}
		case marker == markerSOS:
			if scans++; scans > maxScans {
				return info, fmt.Errorf("it has more than %d scans", maxScans)
			}
			n += scanLength(rest[n:])
		}
		if !isMetadata(marker) {
			clean = append(clean, rest[:n]...)
		}
		rest = rest[n:]
	}
	if info.orientation == upright && (channels == 1 || channels == 3) {
		info.clean = append(clean, 0xFF, markerEOI)
	}
	return info, nil
}

// untilMarker returns the number of bytes before the next marker, which decoders skip.
func untilMarker(data []byte) int {
	for n := 0; ; n++ {
		i := bytes.IndexByte(data[n:], 0xFF)
		if i < 0 || n+i+1 >= len(data) {
			return len(data)
		}
		if n += i; data[n+1] != 0 && data[n+1] != 0xFF {
			return n
		}
	}
}

// segmentLength returns the length of the segment that begins with a marker, without the
// data of a scan.
func segmentLength(data []byte) (n int, ok bool) {
	if marker := data[1]; marker == markerTEM || marker >= markerRST0 && marker <= markerRST7 {
		return 2, true
	}
	if len(data) < 4 {
		return 0, false
	}
	n = int(binary.BigEndian.Uint16(data[2:]))
	return n + 2, n >= 2 && n+2 <= len(data)
}

// isFrame reports whether a segment describes the channels of the image.
func isFrame(marker byte) bool { return marker == 0xC0 || marker == 0xC1 || marker == 0xC2 }

// isMetadata reports whether a decoder does not need a segment. It needs APP0 and APP14,
// which have the encoding of colors.
func isMetadata(marker byte) bool {
	return marker == markerCOM || marker >= markerAPP0 && marker <= markerAPP15 && marker != markerAPP0 && marker != markerAPP14
}

// scanLength returns the length of the data of a scan, up to the next marker.
func scanLength(data []byte) int {
	for n := 0; ; {
		i := bytes.IndexByte(data[n:], 0xFF)
		if i < 0 || n+i+1 >= len(data) {
			return len(data)
		}
		if n += i; data[n+1] != 0 && (data[n+1] < markerRST0 || data[n+1] > markerRST7) {
			return n
		}
		n += 2
	}
}

// exifOrientation returns the orientation in an APP1 segment; 0 if it has none.
func exifOrientation(data []byte) int {
	const (
		tagOrientation = 0x0112
		typeShort      = 3
		entrySize      = 12
	)
	tiff, found := bytes.CutPrefix(data, []byte("Exif\x00\x00"))
	if !found || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(tiff[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 0
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < entrySize {
			return 0
		}
		if order.Uint16(entries) == tagOrientation && order.Uint16(entries[2:]) == typeShort {
			if o := int(order.Uint16(entries[8:])); o >= upright && o <= counter {
				return o
			}
			return 0
		}
		entries = entries[entrySize:]
	}
	return 0
}
