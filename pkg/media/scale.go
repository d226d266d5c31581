package media

import (
	"context"
	"image"
	"image/draw"
)

// Orientations of an image, as in EXIF.
const (
	upright    = 1
	flipped    = 2
	turned     = 3
	turnedFlip = 4
	transposed = 5
	clockwise  = 6
	transverse = 7
	counter    = 8
)

// fit returns an image upright, with at most side pixels on the longer side, in a form
// that encoders write with 8 bits a channel.
func fit(ctx context.Context, img image.Image, side, orientation int) image.Image {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	if longer := max(w, h); longer > side {
		w, h = max(1, (w*side+longer/2)/longer), max(1, (h*side+longer/2)/longer)
	}
	if w == b.Dx() && h == b.Dy() && orientation == upright {
		return eightBits(img)
	}
	return turn(shrink(ctx, img, w, h), orientation)
}

// eightBits returns img if it has 8 bits a channel and colors that encoders know, else a
// copy that does.
func eightBits(img image.Image) image.Image {
	switch img.(type) {
	case *image.Gray, *image.Paletted, *image.NRGBA, *image.RGBA, *image.YCbCr:
		return img
	}
	var out draw.Image = image.NewNRGBA(img.Bounds())
	if _, gray := img.(*image.Gray16); gray {
		out = image.NewGray(img.Bounds())
	}
	draw.Draw(out, out.Bounds(), img, img.Bounds().Min, draw.Src)
	return out
}

// shrink returns img with w×h pixels, at most as many as it has in each direction. Each
// pixel is the mean of the area that it covers, computed with whole numbers, so that all
// machines return the same bytes. It needs memory for a row of img and for the result. The
// result is not complete if ctx has ended.
func shrink(ctx context.Context, img image.Image, w, h int) *image.RGBA {
	from := img.Bounds()
	sw, sh := from.Dx(), from.Dy()
	row := image.NewRGBA(image.Rect(0, 0, sw, 1))
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	line, sum := make([]uint64, 4*w), make([]uint64, 4*w)
	for y := range sh {
		if ctx.Err() != nil {
			break
		}
		draw.Draw(row, row.Rect, img, image.Pt(from.Min.X, from.Min.Y+y), draw.Src)
		shrinkRow(line, row.Pix, w, sw)
		// The row covers h units of the column, in which a pixel of the result has sh.
		target, left := y*h/sh, (y*h/sh+1)*sh-y*h
		if h < left {
			add(sum, line, h)
			continue
		}
		add(sum, line, left)
		finish(out.Pix[target*out.Stride:], sum, sw*sh)
		clear(sum)
		add(sum, line, h-left)
	}
	return out
}

// shrinkRow sets line to the sums of a row of sw pixels over w pixels, weighted so that
// each sum has the weight sw.
func shrinkRow(line []uint64, pix []uint8, w, sw int) {
	clear(line)
	for x := range sw {
		target, left := x*w/sw, (x*w/sw+1)*sw-x*w
		for c, v := range pix[4*x : 4*x+4] {
			line[4*target+c] += uint64(v) * uint64(min(w, left)) //nolint:gosec // a weight is at least 1
			if w > left {
				line[4*target+4+c] += uint64(v) * uint64(w-left) //nolint:gosec // positive
			}
		}
	}
}

func add(sum, line []uint64, weight int) {
	for i, v := range line {
		sum[i] += v * uint64(weight) //nolint:gosec // a weight is at least 0
	}
}

func finish(pix []uint8, sum []uint64, weight int) {
	whole := uint64(weight) //nolint:gosec // the pixels of an image
	for i, v := range sum {
		pix[i] = uint8((v + whole/2) / whole) //nolint:gosec // a mean of bytes
	}
}

// turn returns an image of an orientation upright.
func turn(img *image.RGBA, orientation int) *image.RGBA {
	if orientation == upright {
		return img
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if orientation >= transposed {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch orientation {
			case flipped:
				tx = w - 1 - x
			case turned:
				tx, ty = w-1-x, h-1-y
			case turnedFlip:
				ty = h - 1 - y
			case transposed:
				tx, ty = y, x
			case clockwise:
				tx, ty = h-1-y, x
			case transverse:
				tx, ty = h-1-y, w-1-x
			case counter:
				tx, ty = y, w-1-x
			}
			copy(out.Pix[out.PixOffset(tx, ty):], img.Pix[img.PixOffset(x, y):img.PixOffset(x, y)+4])
		}
	}
	return out
}
