package catalogue

import "strings"

// Takes reports whether a model takes images and PDF documents. A scripted model takes both,
// a model of an unknown provider none.
func (c *Catalogue) Takes(ref string) (images, pdf bool) {
	if strings.HasPrefix(ref, scripted) {
		return true, true
	}
	p, _ := c.ProviderOf(ref)
	if p == nil {
		return false, false
	}
	images, pdf = p.Images, p.PDF
	e := c.Lookup(ref)
	if e.Images != nil {
		images = *e.Images
	}
	if e.PDF != nil {
		pdf = *e.PDF
	}
	return images, pdf
}
