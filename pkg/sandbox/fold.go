package sandbox

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// foldName returns the name that file systems which take several forms for one name have for it: lower
// case, one normal form, without code points that are ignored (HFS+ and ext4 with casefold), and without
// the stream of a file and the dots and blanks at its end (NTFS). It maps more forms to one name than
// any single file system does.
func foldName(name string) string {
	if i := strings.IndexByte(name, ':'); i >= 0 {
		name = name[:i] // name::$INDEX_ALLOCATION
	}
	for i := range len(name) {
		if name[i] >= 0x80 {
			name = norm.NFKC.String(strings.Map(foldRune, norm.NFKC.String(name)))
			break
		}
	}
	if name != "." && name != ".." {
		name = strings.TrimRight(name, ". ")
	}
	return strings.ToLower(name)
}

// foldRune returns a code point in lower case, and -1 for one that is ignored: those of HFS+, which
// git's is_hfs_dotgit lists, and the other ones that Unicode ignores by default.
func foldRune(r rune) rune {
	if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return -1
	}
	return unicode.ToLower(unicode.ToUpper(r)) // so the long s is an s
}

// shortNames are the names that NTFS makes for those of placeNames that are too long for it, with the
// first four numbers. Names that it makes of a checksum, for a fifth one, are left out.
var shortNames = func() map[string]string {
	short := map[string]string{}
	for name, what := range placeNames {
		stem, extension := name, ""
		if i := strings.LastIndexByte(name, '.'); i > 0 {
			stem, extension = name[:i], name[i:]
		}
		plain := strings.ReplaceAll(stem, ".", "")
		if plain == stem && len(stem) <= 8 && len(extension) <= 4 {
			continue // it is one
		}
		for n := 1; n <= 4; n++ {
			short[plain[:min(len(plain), 6)]+"~"+strconv.Itoa(n)+extension[:min(len(extension), 4)]] = what
		}
	}
	return short
}()
