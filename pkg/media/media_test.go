package media_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

var blue = color.NRGBA{R: 10, G: 20, B: 200, A: 255}

func TestCheckAcceptsByContent(t *testing.T) {
	glass := color.NRGBA{R: 200, A: 100}
	for name, c := range map[string]struct {
		data  []byte
		kind  string
		w, h  uint32
		pages uint32
	}{
		"png":                   {mediatest.PNG(mediatest.Plain(30, 20, blue)), media.PNG, 30, 20, 0},
		"jpeg.png":              {mediatest.JPEG(mediatest.Noise(30, 20)), media.JPEG, 30, 20, 0},
		"first frame of a gif":  {mediatest.GIF(30, 20, blue, color.White), media.PNG, 30, 20, 0},
		"webp":                  {mediatest.WebP(30, 20, glass), media.PNG, 30, 20, 0},
		"wide":                  {mediatest.PNG(mediatest.Plain(4000, 3000, blue)), media.PNG, 2000, 1500, 0},
		"tall jpeg":             {mediatest.JPEG(mediatest.Plain(100, 5000, blue)), media.JPEG, 40, 2000, 0},
		"a line":                {mediatest.PNG(mediatest.Plain(50_000, 1, blue)), media.PNG, 2000, 1, 0},
		"gray jpeg":             {mediatest.JPEG(image.NewGray(image.Rect(0, 0, 3000, 30))), media.JPEG, 2000, 20, 0},
		"16 bits":               {mediatest.PNG(image.NewNRGBA64(image.Rect(0, 0, 7, 5))), media.PNG, 7, 5, 0},
		"gray":                  {mediatest.PNG(image.NewGray16(image.Rect(0, 0, 7, 5))), media.PNG, 7, 5, 0},
		"document":              {mediatest.PDF(40), media.PDF, 0, 0, 40},
		"compressed document":   {mediatest.CompressedPDF(7, 0), media.PDF, 0, 0, 7},
		"the longest document":  {mediatest.PDF(media.MaxPages), media.PDF, 0, 0, media.MaxPages},
		"a name\nof two  lines": {mediatest.PDF(1), media.PDF, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, data, err := media.Check(name, c.data)
			if err != nil {
				t.Fatal(err)
			}
			want := &harnessv1.Media{Type: c.kind, Width: c.w, Height: c.h, Pages: c.pages, Name: strings.Join(strings.Fields(name), " ")}
			if m.String() != want.String() {
				t.Errorf("media %v, want %v", m, want)
			}
			if got := media.TypeOf(data); got != c.kind {
				t.Errorf("the stored bytes are %q, want %q", got, c.kind)
			}
			m.Data = data
			if !media.Accepted(m) || media.Accepted(&harnessv1.Media{Data: data}) {
				t.Errorf("%v is not accepted, or accepted without its size", m.GetType())
			}
			if depth := 24; c.kind == media.PNG && data[depth] > 8 {
				t.Errorf("stored with %d bits a channel", data[depth])
			}
			ref := &harnessv1.BlobRef{Digest: "d", Size: uint64(len(data)), Preview: "x"}
			want.Blob = &harnessv1.BlobRef{Digest: "d", Size: ref.Size}
			if stored := media.Stored(m, ref); !proto.Equal(stored, want) {
				t.Errorf("stored %v, want %v without data and preview", stored, want)
			}
			m.Data = nil
			again, same, err := media.Check(name, data)
			if err != nil || again.String() != m.String() || !bytes.Equal(same, data) {
				t.Errorf("a second check returns %v and %d bytes (%v), want %v and the same %d", again, len(same), err, m, len(data))
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	noise := mediatest.PNG(mediatest.Noise(50, 50))
	photo := mediatest.JPEG(mediatest.Noise(50, 50))
	long := mediatest.GIF(50, 50, blue)
	document := mediatest.PDF(3)
	scan := append(append([]byte{}, photo[:len(photo)-2]...), bytes.Repeat(photo[bytes.Index(photo, []byte{0xFF, 0xDA}):len(photo)-2], 150)...)
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":              {nil, "the file is empty"},
		"a large file":         {make([]byte, media.MaxData+1), "the file is larger than 20 MB"},
		"text":                 {[]byte("<svg/>"), "unknown type; expected a PNG, JPEG, GIF, WebP or PDF file"},
		"bmp":                  {[]byte("BM6\x00\x00\x00\x00\x00\x00\x00"), "unknown type"},
		"a bomb":               {mediatest.PNGHeader(50_000, 50_000), "the image has 50000×50000 pixels, 2500 megapixels; expected at most 50; scale it down first"},
		"a WebP bomb":          {mediatest.WebP(16383, 16383, blue), "expected at most 50"},
		"no pixels":            {mediatest.PNGHeader(0, 100), "the PNG image is damaged or truncated: non-positive dimension"},
		"no pixels in a gif":   {append([]byte("GIF89a"), make([]byte, 7)...), "the image has no pixels (0×0)"},
		"a truncated png":      {noise[:len(noise)/2], "the PNG image is damaged or truncated: not enough pixel data"},
		"a truncated jpeg":     {photo[:len(photo)/2], "the JPEG image is damaged or truncated: unexpected end of its segments"},
		"a truncated gif":      {long[:len(long)-20], "the GIF image is damaged or truncated: "},
		"a truncated webp":     {mediatest.WebP(30, 20, blue)[:30], "the WebP image is damaged or truncated: "},
		"the start of a jpeg":  {photo[:3], "the JPEG image is damaged or truncated: "},
		"an animated webp":     {mediatest.AnimatedWebP(30, 20), "an animated WebP image is not supported; send one frame of it"},
		"a jpeg of many scans": {append(scan, 0xFF, 0xD9), "it has more than 100 scans"},
		"a long document":      {mediatest.PDF(media.MaxPages + 1), "the PDF has more than 100 pages; split it"},
		"a locked document":    {mediatest.EncryptedPDF(3), "the PDF is encrypted; remove its password first"},
		"a truncated document": {document[:len(document)/2], "the PDF is damaged or truncated: its pages are not found"},
	} {
		t.Run(name, func(t *testing.T) {
			m, data, err := media.Check("x", c.data)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") || m != nil || data != nil {
				t.Errorf("%v, %d bytes, error %v; want the error %q alone", m, len(data), err, c.says)
			}
		})
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestBombsCostNothing(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		most uint64
	}{
		"png":  {mediatest.PNGHeader(50_000, 50_000), 64 << 10},
		"webp": {mediatest.WebP(16383, 16383, blue), 64 << 10},
		"pdf":  {mediatest.CompressedPDF(3, 100<<20), 96 << 20},
	} {
		if n := allocated(func() { _, _, _ = media.Check("x", c.data) }); n > c.most {
			t.Errorf("%s: a check of %d bytes allocates %d, want at most %d", name, len(c.data), n, c.most)
		}
	}
}

func TestLargeImagesBecomeSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("scales images of 12 MB")
	}
	t.Parallel()
	screenshot := mediatest.PNG(mediatest.Noise(2400, 1700))
	if len(screenshot) < 12_000_000 {
		t.Fatalf("the screenshot has %d bytes, want 12 MB", len(screenshot))
	}
	for name, data := range map[string][]byte{"png": screenshot, "jpeg": mediatest.JPEG(mediatest.Noise(2400, 1700))} {
		m, stored, err := media.Check(name, data)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := jpeg.Decode(bytes.NewReader(stored))
		if err != nil || m.GetType() != media.JPEG || len(stored) > media.MaxImage {
			t.Fatalf("%s: %v of %d bytes (%v), want a JPEG of at most %d", name, m, len(stored), err, media.MaxImage)
		}
		if size := decoded.Bounds().Size(); size.X > media.MaxSide || uint32(size.X) != m.GetWidth() || uint32(size.Y) != m.GetHeight() {
			t.Errorf("%s: decoded %v, want the %d×%d of its media", name, size, m.GetWidth(), m.GetHeight())
		}
	}
}

// TestImagesThatDoNotCompress have a fitting number of pixels and too many bytes.
func TestImagesThatDoNotCompress(t *testing.T) {
	if testing.Short() {
		t.Skip("encodes 7 million pixels of noise")
	}
	t.Parallel()
	half := mediatest.Noise(1300, 1300) // its left half is transparent
	for i := range half.Pix {
		if x := i / 4 % 1300; i%4 == 3 && x < 650 {
			half.Pix[i] = 0
		}
	}
	for name, img := range map[string]image.Image{"opaque": mediatest.Noise(1300, 1300), "large": mediatest.Noise(2000, 2000), "half transparent": half} {
		m, stored, err := media.Check("x", mediatest.PNG(img))
		if err != nil || m.GetType() != media.JPEG || len(stored) > media.MaxImage {
			t.Fatalf("%s: %v of %d bytes (%v), want a JPEG of at most %d", name, m, len(stored), err, media.MaxImage)
		}
		decoded, err := jpeg.Decode(bytes.NewReader(stored))
		if err != nil {
			t.Fatal(err)
		}
		if r, g, b, _ := decoded.At(300, 300).RGBA(); name == "half transparent" && min(r, g, b) < 0xF000 {
			t.Errorf("a transparent pixel became %x %x %x, want white", r, g, b)
		}
	}
}

func TestFirstFrameIsPlacedOnTheScreen(t *testing.T) {
	frame := image.NewPaletted(image.Rect(10, 5, 20, 15), color.Palette{blue})
	var file bytes.Buffer
	err := gif.EncodeAll(&file, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0}, Config: image.Config{Width: 30, Height: 20}})
	if err != nil {
		t.Fatal(err)
	}
	m, stored, err := media.Check("x", file.Bytes())
	if err != nil || m.GetWidth() != 30 || m.GetHeight() != 20 {
		t.Fatalf("%v (%v), want 30×20", m, err)
	}
	img, err := png.Decode(bytes.NewReader(stored))
	if err != nil {
		t.Fatal(err)
	}
	if inside, outside := color.NRGBAModel.Convert(img.At(15, 10)), color.NRGBAModel.Convert(img.At(2, 2)); inside != blue || outside != (color.NRGBA{}) {
		t.Errorf("inside of the frame is %v, outside %v", inside, outside)
	}
}

// TestColorsOfAdobeAreKept: without the segment of Adobe, red would be read as a
// brightness.
func TestColorsOfAdobeAreKept(t *testing.T) {
	file := mediatest.WithSegment(mediatest.JPEG(mediatest.Plain(16, 16, blue)), 0xEE, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00"))
	before, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	_, stored, err := media.Check("x", file)
	if err != nil {
		t.Fatal(err)
	}
	after, err := jpeg.Decode(bytes.NewReader(stored))
	if err != nil || after.At(8, 8) != before.At(8, 8) {
		t.Errorf("the color is %v (%v), want %v", after.At(8, 8), err, before.At(8, 8))
	}
}

// TestScalingKeepsTheMean fails if pixels of the original get another weight than their
// area.
func TestScalingKeepsTheMean(t *testing.T) {
	const w, h = 2999, 2003
	whole := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			whole.SetNRGBA(x, y, color.NRGBA{R: uint8(255 * x / w), G: uint8(255 * y / h), B: uint8(255 * (x / 60 % 2)), A: 255})
		}
	}
	_, data, err := media.Check("x", mediatest.PNG(whole))
	if err != nil {
		t.Fatal(err)
	}
	small, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	size := small.Bounds().Size()
	if size != image.Pt(2000, 1336) {
		t.Fatalf("scaled to %v, want 2000×1336", size)
	}
	var blues uint64
	for y := range size.Y {
		for x := range size.X {
			r, g, b, _ := small.At(x, y).RGBA()
			blues += uint64(b >> 8)
			if wantR, wantG := 255*x/size.X, 255*y/size.Y; abs(int(r>>8)-wantR) > 1 || abs(int(g>>8)-wantG) > 1 {
				t.Fatalf("pixel %d,%d is %d,%d, want %d,%d", x, y, r>>8, g>>8, wantR, wantG)
			}
		}
	}
	mean := float64(blues) / float64(size.X*size.Y)
	var want float64
	for x := range w {
		want += float64(255*(x/60%2)) / w
	}
	if mean < want-0.1 || mean > want+0.1 {
		t.Errorf("the mean is %.3f, want %.3f", mean, want)
	}
}

func abs(n int) int { return max(n, -n) }

func TestOrientationIsApplied(t *testing.T) {
	// The quarters of the upright image: red, green, then blue, white.
	want := []color.NRGBA{{R: 255, A: 255}, {G: 255, A: 255}, {B: 255, A: 255}, {R: 255, G: 255, B: 255, A: 255}}
	// stored are the quarters as a camera stores them for each orientation.
	for orientation, stored := range map[int][]int{
		1: {0, 1, 2, 3}, 2: {1, 0, 3, 2}, 3: {3, 2, 1, 0}, 4: {2, 3, 0, 1}, 5: {0, 2, 1, 3}, 6: {1, 3, 0, 2}, 7: {3, 1, 2, 0}, 8: {2, 0, 3, 1},
	} {
		w, h := 64, 32
		if orientation >= 5 {
			w, h = h, w
		}
		img := image.NewNRGBA(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				img.SetNRGBA(x, y, want[stored[2*(y*2/h)+x*2/w]])
			}
		}
		m, data, err := media.Check("x", mediatest.WithOrientation(mediatest.JPEG(img), orientation, ""))
		if err != nil {
			t.Fatal(err)
		}
		upright, err := jpeg.Decode(bytes.NewReader(data))
		if err != nil || m.GetWidth() != 64 || m.GetHeight() != 32 {
			t.Fatalf("orientation %d: %v (%v), want 64×32", orientation, m, err)
		}
		for i, c := range want {
			r, g, b, _ := upright.At(16+32*(i%2), 8+16*(i/2)).RGBA()
			if abs(int(r>>8)-int(c.R))+abs(int(g>>8)-int(c.G))+abs(int(b>>8)-int(c.B)) > 20 {
				t.Errorf("orientation %d: quarter %d is %d,%d,%d, want %v", orientation, i, r>>8, g>>8, b>>8, c)
			}
		}
	}
}

func TestMetadataIsDropped(t *testing.T) {
	const secret = "GPS-52.5200N-13.4050E"
	photo := mediatest.JPEG(mediatest.Noise(60, 40))
	drawing := mediatest.PNG(mediatest.Noise(60, 40))
	for name, data := range map[string][]byte{
		"exif":        mediatest.WithOrientation(photo, 1, secret),
		"turned exif": mediatest.WithOrientation(photo, 6, secret),
		"comment":     mediatest.WithSegment(photo, 0xFE, []byte(secret)),
		"profile":     mediatest.WithSegment(photo, 0xE2, []byte(secret)),
		"tail":        append(photo[:len(photo):len(photo)], secret...),
		"frames":      append(append(drawing[:33:33], mediatest.Chunk("fdAT", []byte(secret))...), drawing[33:]...),
		"png text":    append(append(drawing[:33:33], mediatest.Chunk("tEXt", []byte("Comment\x00"+secret))...), drawing[33:]...),
		"png tail":    append(drawing[:len(drawing):len(drawing)], secret...),
	} {
		if !bytes.Contains(data, []byte(secret)) {
			t.Fatalf("%s: the file has no metadata", name)
		}
		_, stored, err := media.Check("x", data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if bytes.Contains(stored, []byte(secret)) {
			t.Errorf("%s: the metadata are stored", name)
		}
	}
	if _, stored, _ := media.Check("x", mediatest.WithOrientation(photo, 1, secret)); !bytes.Equal(stored, photo) {
		t.Errorf("an upright JPEG of a fitting size was encoded again")
	}
	if _, stored, _ := media.Check("x", append(drawing[:len(drawing):len(drawing)], secret...)); !bytes.Equal(stored, drawing) {
		t.Errorf("a PNG of a fitting size was encoded again")
	}
}

func TestAcceptedComparesWithTheHeader(t *testing.T) {
	small, wide := mediatest.PNG(mediatest.Noise(9, 7)), mediatest.PNG(mediatest.Plain(4000, 7, blue))
	for name, m := range map[string]*harnessv1.Media{
		"another width":  {Type: media.PNG, Width: 8, Height: 7, Data: small},
		"another height": {Type: media.PNG, Width: 9, Height: 8, Data: small},
		"another type":   {Type: media.JPEG, Width: 9, Height: 7, Data: small},
		"too wide":       {Type: media.PNG, Width: 4000, Height: 7, Data: wide},
		"another format": {Type: media.GIF, Width: 9, Height: 7, Data: mediatest.GIF(9, 7, blue)},
		"too large":      {Type: media.PNG, Width: 9, Height: 7, Data: append(small[:len(small):len(small)], make([]byte, media.MaxImage)...)},
		"other pages":    {Type: media.PDF, Pages: 2, Data: mediatest.PDF(3)},
		"encrypted":      {Type: media.PDF, Pages: 3, Data: mediatest.EncryptedPDF(3)},
		"no data":        {},
	} {
		if media.Accepted(m) {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 KB", 245_300: "240 KB", 1<<20 - 513: "1023 KB", 1<<20 - 512: "1.0 MB", 20 << 20: "20 MB", 12_900_000: "12.3 MB",
	} {
		if got := media.Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, data := range [][]byte{
		mediatest.PNG(mediatest.Noise(9, 7)), mediatest.JPEG(mediatest.Noise(9, 7)), mediatest.GIF(9, 7, blue, blue), mediatest.WebP(9, 7, blue),
		mediatest.PDF(2), mediatest.CompressedPDF(2, 0), mediatest.EncryptedPDF(1), mediatest.AnimatedWebP(9, 7), mediatest.PNGHeader(50_000, 50_000),
		mediatest.WithOrientation(mediatest.JPEG(mediatest.Noise(9, 7)), 6, "x"),
	} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, stored, err := media.Check("name", data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error %q has several lines", err)
			}
			return
		}
		if media.IsDocument(m) != (m.GetPages() > 0) || media.IsDocument(m) == (m.GetWidth()*m.GetHeight() > 0) || m.GetWidth() > media.MaxSide || m.GetHeight() > media.MaxSide {
			t.Errorf("media %v", m)
		}
		if again, same, err := media.Check("name", stored); err != nil || !bytes.Equal(same, stored) || fmt.Sprint(again) != fmt.Sprint(m) {
			t.Errorf("a second check differs: %v, %v", again, err)
		}
	})
}
