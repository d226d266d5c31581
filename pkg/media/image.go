package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"

	"golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// decoding bounds the pixels that are decoded at the same time: a pixel needs up to 15
// bytes.
var decoding = semaphore.NewWeighted(64 << 20)

// checkImage validates an image of m's type and sets its size. Its error is that of ctx if
// ctx ends.
func checkImage(ctx context.Context, m *harnessv1.Media, data []byte) (*harnessv1.Media, []byte, error) {
	kind := m.GetType()
	if kind == WebP && animated(data) {
		return nil, nil, errors.New("an animated WebP image is not supported; send one frame of it")
	}
	config, err := configOf(kind, data)
	if err != nil {
		return nil, nil, damaged(kind, err)
	}
	pixels := int64(config.Width) * int64(config.Height)
	switch {
	case config.Width <= 0 || config.Height <= 0:
		return nil, nil, fmt.Errorf("the image has no pixels (%d×%d)", config.Width, config.Height)
	case pixels > maxPixels:
		return nil, nil, fmt.Errorf("the image has %d×%d pixels, %d megapixels; expected at most %d; scale it down first",
			config.Width, config.Height, (pixels+500_000)/1_000_000, maxPixels/1_000_000)
	}
	if err := decoding.Acquire(ctx, pixels); err != nil { // it waits for other images only
		return nil, nil, err
	}
	defer decoding.Release(pixels)

	info := jpegInfo{orientation: upright}
	if kind == JPEG {
		if info, err = readJPEG(data); err != nil {
			return nil, nil, damaged(kind, err)
		}
	}
	img, err := decode(ctx, kind, data, config)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case err != nil:
		return nil, nil, damaged(kind, err)
	}
	clean := info.clean
	if kind == PNG {
		clean = cleanPNG(data)
	}
	if clean != nil && len(clean) <= MaxImage && max(config.Width, config.Height) <= MaxSide {
		// Encoding it again would take time and lose detail.
		m.Width, m.Height = uint32(config.Width), uint32(config.Height) //nolint:gosec // at most MaxSide
		return m, clean, nil
	}
	clean = encode(ctx, m, img, info.orientation)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return m, clean, nil
}

// encode sets type and size of m and returns the image as it is stored. It returns anything
// if ctx has ended.
func encode(ctx context.Context, m *harnessv1.Media, img image.Image, orientation int) []byte {
	_, ycbcr := img.(*image.YCbCr) // a WebP image that is already lossy
	lossy := ycbcr || m.GetType() == JPEG
	img = fit(ctx, img, MaxSide, orientation)
	m.Width, m.Height = uint32(img.Bounds().Dx()), uint32(img.Bounds().Dy()) //nolint:gosec // at most MaxSide
	if !lossy {
		if data, ok := encodePNG(ctx, img); ok {
			m.Type = PNG
			return data
		}
	}
	m.Type = JPEG
	img = flatten(img)
	for {
		for _, quality := range []int{90, 80, 65, 50} {
			b := &smallBuffer{ctx: ctx}
			err := jpeg.Encode(b, img, &jpeg.Options{Quality: quality}) // fails if the buffer is full: the sides are small
			if err == nil || ctx.Err() != nil {
				m.Width, m.Height = uint32(img.Bounds().Dx()), uint32(img.Bounds().Dy()) //nolint:gosec // at most MaxSide
				return b.Bytes()
			}
		}
		img = fit(ctx, img, max(img.Bounds().Dx(), img.Bounds().Dy())*3/4, upright)
	}
}

func damaged(kind string, err error) error {
	reason := err.Error()
	for _, prefix := range []string{"png: ", "jpeg: ", "gif: ", "webp: ", "vp8: ", "vp8l: ", "riff: ", "invalid format: "} {
		reason = strings.TrimPrefix(reason, prefix)
	}
	return fmt.Errorf("the %s image is damaged or truncated: %s", names[kind], reason)
}

// configOf reads the size of an image from its header.
func configOf(kind string, data []byte) (config image.Config, err error) {
	defer recovered(&err)
	r := bytes.NewReader(data)
	switch kind {
	case PNG:
		return png.DecodeConfig(r)
	case JPEG:
		return jpeg.DecodeConfig(r)
	case GIF:
		return gif.DecodeConfig(r)
	}
	return webp.DecodeConfig(r)
}

// decode decodes an image, of an animated one the first frame, until ctx ends.
func decode(ctx context.Context, kind string, data []byte, config image.Config) (img image.Image, err error) {
	defer recovered(&err)
	r := &reader{ctx: ctx, rest: bytes.NewReader(data)}
	switch kind {
	case PNG:
		return png.Decode(r)
	case JPEG:
		return jpeg.Decode(r)
	case WebP:
		return webp.Decode(r)
	}
	frame, err := gif.Decode(r)
	screen := image.Rect(0, 0, config.Width, config.Height)
	if err != nil || frame.Bounds() == screen {
		return frame, err
	}
	whole := image.NewNRGBA(screen)
	draw.Draw(whole, frame.Bounds(), frame, frame.Bounds().Min, draw.Src)
	return whole, nil
}

// recovered turns a panic of a decoder into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
}

// animated reports whether a WebP image has the flag of an animation.
func animated(data []byte) bool {
	const animation = 1 << 1
	return len(data) > 20 && string(data[12:16]) == "VP8X" && data[20]&animation != 0
}

// encodePNG returns img as PNG; ok is false if it is larger than MaxImage, or ctx has ended.
func encodePNG(ctx context.Context, img image.Image) (data []byte, ok bool) {
	w := &smallBuffer{ctx: ctx}
	if png.Encode(w, img) != nil {
		return nil, false
	}
	return w.Bytes(), true
}

// smallBuffer is a buffer of at most MaxImage bytes. It has no other methods of a buffer,
// which encoders would prefer to Write.
type smallBuffer struct {
	ctx    context.Context //nolint:containedctx // of one Check
	buffer bytes.Buffer
}

var errFull = errors.New("the image is too large")

func (b *smallBuffer) Bytes() []byte { return b.buffer.Bytes() }

func (b *smallBuffer) Write(p []byte) (int, error) {
	if b.buffer.Len()+len(p) > MaxImage {
		return 0, errFull
	}
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.buffer.Write(p)
}

// maxRead bounds the data that is decoded between two checks of the context, in bytes.
const maxRead = 64 << 10

// reader reads data until its context ends.
type reader struct {
	ctx  context.Context //nolint:containedctx // of one Check
	rest *bytes.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.rest.Read(p[:min(len(p), maxRead)])
}

func opaqueImage(img image.Image) bool {
	o, ok := img.(interface{ Opaque() bool })
	return ok && o.Opaque()
}

// flatten returns an image without transparency, on white.
func flatten(img image.Image) image.Image {
	if opaqueImage(img) {
		return img
	}
	flat := image.NewRGBA(img.Bounds())
	draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Over)
	return flat
}
