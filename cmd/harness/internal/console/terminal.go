package console

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
)

func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Style returns the style of lines for people on a stream.
func (a *Console) Style(stream any) render.Style {
	locale := a.Env("LC_ALL")
	for _, name := range []string{"LC_CTYPE", "LANG"} {
		if locale == "" {
			locale = a.Env(name)
		}
	}
	locale = strings.ToLower(locale)
	return render.Style{
		Width:  a.Width(stream),
		Colour: IsTerminal(stream) && a.Env("NO_COLOR") == "" && a.Env("TERM") != "dumb",
		UTF8:   strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8"),

		Terminal: IsTerminal(stream),
	}
}

// narrowest is the narrowest terminal whose width is used.
const narrowest = 20

// Width returns the line width of a stream: COLUMNS, otherwise the terminal's; 0 without
// a terminal.
func (a *Console) Width(stream any) int {
	width, err := strconv.Atoi(a.Env("COLUMNS"))
	if f, ok := stream.(*os.File); err != nil && ok {
		width, _, err = term.GetSize(int(f.Fd()))
	}
	if err != nil || width < narrowest {
		return 0
	}
	return width
}

// Capable reports whether a stream is a terminal that can move its cursor.
func (a *Console) Capable(stream any) bool {
	kind := a.Env("TERM")
	return IsTerminal(stream) && kind != "" && kind != "dumb"
}

// Size returns the size of the terminal in columns and rows; 80 by 24 without one.
func (a *Console) Size(stream any) (width, height int) {
	width, height = a.Width(stream), 24
	if f, ok := stream.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	if width == 0 {
		width = 80
	}
	return width, height
}

// Interactive reports whether a user can be prompted.
func (a *Console) Interactive() bool { return IsTerminal(a.In) && IsTerminal(a.Err) }

// Rows returns the height of a terminal; 0 if it is unknown.
func Rows(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	_, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return height
}
