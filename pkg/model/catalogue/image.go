package catalogue

import "math"

// ImageTokens is the formula for the tokens of an image: the image is scaled down to
// the limits and divided into square patches. The zero value counts one token for 750
// pixels.
type ImageTokens struct {
	// Patch is the side of a patch, in pixels; 0: there are no patches.
	Patch uint32
	// MaxSide and ShortSide limit the longer and the shorter side, in pixels; 0: no limit.
	MaxSide, ShortSide uint32
	// MaxPatches limits the number of patches; 0: no limit.
	MaxPatches uint32
	// Each is the number of tokens of a patch, and Base that of an image without any.
	Each, Base float64
}

// pixelsPerToken is that of a model without a formula.
const pixelsPerToken = 750

// Tokens returns the tokens of an image of the given size in pixels, rounded up.
func (f ImageTokens) Tokens(width, height uint32) uint64 {
	w, h := float64(width), float64(height)
	if width == 0 || height == 0 {
		return 0
	}
	if f.Patch == 0 {
		return uint64(math.Ceil(w * h / pixelsPerToken))
	}
	if f.MaxSide > 0 {
		scale := min(1, float64(f.MaxSide)/max(w, h))
		w, h = w*scale, h*scale
	}
	if f.ShortSide > 0 {
		scale := min(1, float64(f.ShortSide)/min(w, h))
		w, h = w*scale, h*scale
	}
	return uint64(math.Ceil(f.Base + f.Each*f.patches(w, h)))
}

// patches returns the number of patches that cover w by h pixels. An image that needs
// too many is scaled down by its area, and then so that one side has whole patches, as
// OpenAI documents it.
func (f ImageTokens) patches(w, h float64) float64 {
	side, limit := float64(f.Patch), float64(f.MaxPatches)
	across, down := w/side, h/side
	if limit > 0 && math.Ceil(across)*math.Ceil(down) > limit {
		scale := math.Sqrt(limit / (across * down))
		across, down = across*scale, down*scale
		scale = min(whole(across), whole(down))
		// The quotient of the side that is whole may lie just above a whole number.
		across, down = math.Round(across*scale*precision)/precision, math.Round(down*scale*precision)/precision
		return min(limit, max(1, math.Ceil(across))*max(1, math.Ceil(down)))
	}
	return math.Ceil(across) * math.Ceil(down)
}

// precision is that of quotients before they are rounded up.
const precision = 1e6

// whole returns the factor that makes a number of patches whole.
func whole(n float64) float64 {
	if n < 1 {
		return 1
	}
	return math.Floor(n) / n
}
