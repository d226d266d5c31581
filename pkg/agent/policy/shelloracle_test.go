package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

// languages are the shells that /bin/sh may be.
var languages = []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash, syntax.LangMirBSDKorn}

// compare fails if simpleCommands takes a line for plain that the parser of mvdan.cc/sh
// reads in another way, in one of the languages. A line that the parser refuses runs nothing,
// or, line by line, what is before the mistake; so the commands of the lines that parse have
// to be among those of simpleCommands.
func compare(t interface {
	Helper()
	Errorf(string, ...any)
}, line string) (plain bool) {
	t.Helper()
	commands, plain := simpleCommands(line)
	if !plain {
		return false
	}
	for _, language := range languages {
		read, err := oracleCommands(line, language)
		if bad := (syntax.ParseError{}); errors.As(err, &bad) {
			continue
		}
		if err != nil || fmt.Sprint(read) != fmt.Sprint(commands) {
			t.Errorf("%q is %v here, and %v for %v: %v", line, commands, read, language, err)
		}
	}
	return true
}

// oracleCommands returns the simple commands of a line as mvdan.cc/sh reads it. The error
// names what is no simple command that the rules may take for plain.
func oracleCommands(line string, language syntax.LangVariant) (commands [][]word, err error) {
	file, err := syntax.NewParser(syntax.Variant(language)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, err
	}
	for _, s := range file.Stmts {
		if commands, err = appendCommands(commands, s); err != nil {
			return commands, err
		}
	}
	return commands, nil
}

func appendCommands(to [][]word, s *syntax.Stmt) ([][]word, error) {
	if s.Background || s.Coprocess || s.Negated || s.Disown || len(s.Comments) > 0 {
		return to, errors.New("a background command, a negated one, or a comment")
	}
	for _, r := range s.Redirs {
		if target := r.Word.Lit(); r.Op != syntax.RdrOut && r.Op != syntax.DplOut || r.Op == syntax.RdrOut && target != "/dev/null" || r.Op == syntax.DplOut && target != "1" && target != "2" {
			return to, fmt.Errorf("the redirection %v%s", r.Op, target)
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Assigns) > 0 {
			return to, errors.New("an assignment")
		}
		var command []word
		for _, w := range c.Args {
			read, err := oracleWord(w)
			if err != nil {
				return to, err
			}
			command = append(command, read)
		}
		if runsOthers(command[0]) {
			return to, fmt.Errorf("%q, which runs others", command[0].text)
		}
		return append(to, command), nil
	case *syntax.BinaryCmd:
		if c.Op == syntax.PipeAll {
			return to, errors.New("|&")
		}
		to, err := appendCommands(to, c.X)
		if err != nil {
			return to, err
		}
		return appendCommands(to, c.Y)
	}
	return to, fmt.Errorf("a %T", s.Cmd)
}

// oracleWord returns a word without its quotes.
func oracleWord(of *syntax.Word) (w word, err error) {
	for _, part := range of.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			for i := 0; i < len(p.Value); i++ {
				switch c := p.Value[i]; c {
				case '\\':
					i++
				case '*', '?', '[', ']', '~':
					w.expands = true
				case '{', '}':
					return w, errors.New("braces")
				}
				w.text += p.Value[i : i+1]
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				return w, errors.New("$'")
			}
			w.text += p.Value
		case *syntax.DblQuoted:
			if p.Dollar {
				return w, errors.New(`$"`)
			}
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return w, fmt.Errorf("a %T in quotes", inner)
				}
				for i := 0; i < len(lit.Value); i++ {
					if lit.Value[i] == '\\' && i+1 < len(lit.Value) && strings.IndexByte("\"\\$`", lit.Value[i+1]) >= 0 {
						i++
					}
					w.text += lit.Value[i : i+1]
				}
			}
		default:
			return w, fmt.Errorf("a %T", part)
		}
	}
	return w, nil
}

// shellLines are lines that have been read in more than one way by a shell and by a program
// that wants to know what it runs, and everyday ones.
var shellLines = strings.Split(`go test ./... 2>&1 | tail -n 20
git log --oneline -n 5 --format='%h %s' && git status -s
grep -rn "func (s \*Server)" --include='*.go' .
find . -name '*.go' -not -path './vendor/*'
sed -n '1,20p' a.go; sed -i 's/a/b/' b.go
npm run build -- --mode=production
ls -la ~/.config ~root
python3 -c 'import os; print(os.getcwd())'
echo "a  b" 'c\d' e\ f "g\h" "i\"j" "k\\l" "\$x" "\a"
go test -run 'A|B' >/dev/null 2>&1
go test 2> /dev/null ; go test 1>&2
go test >&2
go test 2>&1x
go test a>b
go test 12>/dev/null
go test 3>&1
go test 1 >/dev/null
go test >/dev/null>x
a#b c#d #e
a '#' b
a\
b
a "b\
c"
a 'b' "c"'d'e
a ''"" b
a;b
a;;b
a|b||c&&d
a |& b
a & b
a&&b
a& &b
a 2>&1&&b
a 2>&1;b
a 2>&1|b
a >|b
a <>b
a <<x
a <(b)
a >(b)
a $'b'
a $"b"
a ${b}
a $((1))
a $[1]
a [ b ]
a [b] c?d *e ~f g~ {h,i} {j} k}
[ a ] && b
[[ a ]] && b
((1))
!a
! a
a !b
a ! b
a=b c
a= b
a+=b c
a[0]=b c
c a=b
function a { b; }
a() { b; }
a ( b )
time a
coproc a
select a in b
case a in b) c;; esac
if a
then b
fi
for a in b; do c; done
\if a
'if' a
i\f a
"!" a
\! a
\{ a
'{' a
{ a
} a
do a
done
in a
@(a) b
a +(b)
a =b
=a b
a=
~/a b
~ b
./~ b
%1 b
: a
- a
-- a
a -- b
é à
a`+"\t"+`b`+"\v"+`c
a`+"\r"+`
`+"\ufeff"+`a
a`+"\u00a0"+`b`, "\n")

// TestShellRulesAreThoseOfAParser compares lines, alone and two of them as one text, with
// the parser of mvdan.cc/sh.
func TestShellRulesAreThoseOfAParser(t *testing.T) {
	plain := 0
	for i, line := range shellLines {
		for _, text := range []string{line, line + "\n" + shellLines[(i+1)%len(shellLines)], line + " && " + shellLines[(i+7)%len(shellLines)]} {
			if compare(t, text) {
				plain++
			}
		}
	}
	if plain < 60 {
		t.Errorf("only %d texts are plain", plain)
	}
}

// TestRandomLinesAreThoseOfAParser joins pieces of lines.
func TestRandomLinesAreThoseOfAParser(t *testing.T) {
	pieces := slices.Concat(strings.Split(`go|ls|test| | | |;|&&|&|'|"|\|#|$|(|)|<|>|2>&1|>/dev/null|=|{|}|!|''|"x y"|'x;y'|\ |\;|*|[|]|?|~|[a]|if|then|fi|[[|]]|@|+|,|..|^|%|:|-a|é`, "|"), []string{"|", "||", "\n", "\t", "\\\n"})
	rapid.Check(t, func(t *rapid.T) {
		compare(t, rapid.SampledFrom([]string{"go ", "ls ", ""}).Draw(t, "first")+strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 9).Draw(t, "pieces"), ""))
	})
}

func FuzzShellRules(f *testing.F) {
	for _, line := range shellLines {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) < 200 {
			compare(t, line)
		}
	})
}

// TestARestrictingPrefixFitsWhatPatternsMayGive: git pus? is git push in a folder with a file
// of that name, so a rule that denies git push fits it; one that allows git push does not.
func TestARestrictingPrefixFitsWhatPatternsMayGive(t *testing.T) {
	p, err := parsePrefix("git push origin")
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"git push origin": true, "git push origi[n] x": true, "git pus? origin": true, "git p*": true, "git *": true, "ls; git ~/x": true,
		"git add *": false, "git push": false, "git": false, "ls *": false, "git push main *": false, "git 'pus?' origin": false,
	} {
		if got := p.fits(line, true); got != want {
			t.Errorf("%q: restricted %v", line, got)
		}
		if plain := line == "git push origin" || line == "git push origin x"; p.fits(line, false) != plain {
			t.Errorf("%q: allowed %v", line, !plain)
		}
	}
}
