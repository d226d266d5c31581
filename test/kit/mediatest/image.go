// Package mediatest makes images and documents for tests: noise that cannot be
// compressed, small files of each type, and files that declare more than they contain.
package mediatest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
)

// Noise returns an opaque image of random pixels.
func Noise(width, height int) *image.NRGBA {
	random := rand.New(rand.NewPCG(uint64(width), uint64(height)))
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := 0; i < len(img.Pix); i += 4 {
		binary.LittleEndian.PutUint32(img.Pix[i:], random.Uint32())
		img.Pix[i+3] = 255
	}
	return img
}

// Plain returns an image of one color.
func Plain(width, height int, c color.Color) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	one := color.NRGBAModel.Convert(c).(color.NRGBA)
	for i := 0; i < len(img.Pix); i += 4 {
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = one.R, one.G, one.B, one.A
	}
	return img
}

// PNG encodes an image.
func PNG(img image.Image) []byte {
	return written(func(b *bytes.Buffer) error { return png.Encode(b, img) })
}

// JPEG encodes an image.
func JPEG(img image.Image) []byte {
	return written(func(b *bytes.Buffer) error { return jpeg.Encode(b, img, &jpeg.Options{Quality: 95}) })
}

// GIF encodes an animation with a frame of each color.
func GIF(width, height int, frames ...color.Color) []byte {
	animation := &gif.GIF{}
	for _, c := range frames {
		animation.Image = append(animation.Image, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{c}))
		animation.Delay = append(animation.Delay, 1)
	}
	return written(func(b *bytes.Buffer) error { return gif.EncodeAll(b, animation) })
}

func written(write func(*bytes.Buffer) error) []byte {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		panic("mediatest: " + err.Error())
	}
	return b.Bytes()
}

// Chunk returns a chunk of a PNG file.
func Chunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// PNGHeader returns the beginning of a PNG file that declares a size and has no pixels.
func PNGHeader(width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	return append([]byte("\x89PNG\r\n\x1a\n"), Chunk("IHDR", append(header, 8, 6, 0, 0, 0))...)
}

// WebP returns a lossless image of one color. It takes about 40 bytes, whatever its size.
func WebP(width, height int, c color.NRGBA) []byte {
	bits := &bitWriter{}
	bits.add(0x2f, 8)
	bits.add(uint32(width-1), 14)
	bits.add(uint32(height-1), 14)
	bits.add(1, 1) // alpha
	bits.add(0, 3) // version
	bits.add(0, 3) // no transform, no color cache, one group of codes
	for _, symbol := range []uint8{c.G, c.R, c.B, c.A, 0} {
		bits.add(1, 1) // a simple code
		bits.add(0, 1) // of one symbol
		bits.add(1, 1) // of eight bits
		bits.add(uint32(symbol), 8)
	}
	return riff("VP8L", bits.bytes)
}

// AnimatedWebP returns the beginning of an animation.
func AnimatedWebP(width, height int) []byte {
	header := []byte{1 << 1, 0, 0, 0}
	for _, n := range []int{width - 1, height - 1} {
		header = append(header, byte(n), byte(n>>8), byte(n>>16))
	}
	return riff("VP8X", header)
}

func riff(kind string, data []byte) []byte {
	if len(data)%2 == 1 {
		data = append(data, 0)
	}
	b := append([]byte("RIFF"), 0, 0, 0, 0)
	b = append(append(b, "WEBP"...), kind...)
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(data))), data...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// bitWriter writes numbers, the lowest bit first.
type bitWriter struct {
	bytes []byte
	used  int
}

func (w *bitWriter) add(n uint32, bits int) {
	for i := range bits {
		if w.used%8 == 0 {
			w.bytes = append(w.bytes, 0)
		}
		w.bytes[len(w.bytes)-1] |= byte(n>>i&1) << (w.used % 8)
		w.used++
	}
}

// WithSegment returns a JPEG file with a segment before all others.
func WithSegment(file []byte, marker byte, data []byte) []byte {
	out := append([]byte(nil), file[:2]...)
	out = binary.BigEndian.AppendUint16(append(out, 0xFF, marker), uint16(len(data)+2))
	return append(append(out, data...), file[2:]...)
}

// WithOrientation returns a JPEG file with EXIF data that name an orientation, from 1 to
// 8, and a comment.
func WithOrientation(file []byte, orientation int, comment string) []byte {
	exif := []byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00")
	exif = append(exif, byte(orientation), 0, 0, 0, 0, 0, 0, 0)
	return WithSegment(file, 0xE1, append(exif, comment...))
}
