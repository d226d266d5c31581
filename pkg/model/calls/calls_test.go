package calls_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/calls"
)

// at returns an index.
func at(n int64) *int64 { return &n }

// joined returns the calls that pieces add up to, as ID NAME ARGUMENTS.
func joined(pieces []calls.Piece) []string {
	var a calls.Assembler
	for _, p := range pieces {
		a.Add(p)
	}
	var list []string
	for _, c := range a.Calls() {
		list = append(list, c.ID+" "+c.Name+" "+c.Arguments)
	}
	return list
}

// TestJoin has what services send. Each row is one deviation, or two that were seen together.
func TestJoin(t *testing.T) {
	type p = calls.Piece
	for name, row := range map[string]struct {
		pieces []calls.Piece
		want   []string
	}{
		"as documented": {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(0), Arguments: `{"x":`}, {Index: at(0), Arguments: `1}`}, {Index: at(1), ID: "b", Name: "two", Arguments: "{}"}},
			[]string{`a one {"x":1}`, "b two {}"}},
		"two that grow in turns": {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(1), ID: "b", Name: "two"}, {Index: at(1), Arguments: `{"y"`}, {Index: at(0), Arguments: `{"x"`}, {Index: at(1), Arguments: `:2}`}, {Index: at(0), Arguments: `:1}`}},
			[]string{`a one {"x":1}`, `b two {"y":2}`}},
		"without indexes":                 {[]p{{ID: "a", Name: "one"}, {Arguments: `{"x":1}`}, {ID: "b", Name: "two"}, {Arguments: `{}`}}, []string{`a one {"x":1}`, "b two {}"}},
		"without indexes and ids":         {[]p{{Name: "one"}, {Arguments: `{"x":1}`}, {Name: "one"}, {Arguments: `{"x":2}`}}, []string{` one {"x":1}`, ` one {"x":2}`}},
		"whole, without indexes and ids":  {[]p{{Name: "one", Arguments: "{}"}, {Name: "one", Arguments: "{}"}}, []string{" one {}", " one {}"}},
		"each with the index 0":           {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: "{}"}, {Index: at(0), ID: "b", Name: "two"}, {Index: at(0), Arguments: `{"x":1}`}}, []string{"a one {}", `b two {"x":1}`}},
		"the index 0, no arguments":       {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(0), ID: "b", Name: "one"}}, []string{"a one ", "b one "}},
		"the index 0, no ids":             {[]p{{Index: at(0), Name: "one", Arguments: "{}"}, {Index: at(0), Name: "two", Arguments: "{}"}}, []string{" one {}", " two {}"}},
		"arguments on another index":      {[]p{{Index: at(2), ID: "a", Name: "one"}, {Index: at(1), Arguments: `{"x":`}, {Index: at(1), Arguments: ` `}, {Index: at(1), Arguments: `1}`}}, []string{`a one {"x": 1}`}},
		"second head on the first index":  {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: `{"x":1}`}, {Index: at(0), ID: "b", Name: "two"}, {Index: at(1), Arguments: `{"x"`}, {Index: at(1), Arguments: `:2}`}}, []string{`a one {"x":1}`, `b two {"x":2}`}},
		"second arguments on the first":   {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: `{"x":1}`}, {Index: at(1), ID: "b", Name: "two"}, {Index: at(0), Arguments: `{"x":2}`}}, []string{`a one {"x":1}`, `b two {"x":2}`}},
		"an index for each piece":         {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(1), Arguments: `{"x": "`}, {Index: at(2), Arguments: " "}, {Index: at(3), Arguments: `"}`}}, []string{`a one {"x": " "}`}},
		"the id with each piece":          {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(0), ID: "a", Arguments: `{"x"`}, {Index: at(0), ID: "a", Arguments: `:1}`}}, []string{`a one {"x":1}`}},
		"id and name with each piece":     {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(0), ID: "a", Name: "one", Arguments: `{"x"`}, {Index: at(0), ID: "a", Name: "one", Arguments: `:1}`}}, []string{`a one {"x":1}`}},
		"the id on another index":         {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(1), ID: "a", Arguments: `{"x":1}`}}, []string{`a one {"x":1}`}},
		"a new id with each piece":        {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(0), ID: "b", Arguments: `{"x": "`}, {Index: at(0), ID: "c", Arguments: ` `}, {Index: at(0), ID: "d", Arguments: `"}`}, {Index: at(0), ID: "e"}}, []string{`a one {"x": " "}`}},
		"a new id and the name each time": {[]p{{ID: "a", Name: "one", Arguments: `{"x"`}, {ID: "b", Name: "one", Arguments: `:1}`}}, []string{`a one {"x":1}`}},
		"the id after the name":           {[]p{{Index: at(0), Name: "one"}, {Index: at(0), ID: "a", Arguments: "{}"}}, []string{"a one {}"}},
		"the name after the id":           {[]p{{ID: "a"}, {Name: "one"}, {Arguments: "{}"}}, []string{"a one {}"}},
		"the name after the id, twice":    {[]p{{ID: "a"}, {Name: "one"}, {Arguments: "{}"}, {ID: "b"}, {Name: "two", Arguments: "{}"}}, []string{"a one {}", "b two {}"}},
		"the head after the arguments":    {[]p{{Index: at(0), Arguments: `{"x":1}`}, {Index: at(0), ID: "a", Name: "one"}}, []string{`a one {"x":1}`}},
		"the name with each piece":        {[]p{{Index: at(0), Name: "one", Arguments: `{"x"`}, {Index: at(0), Name: "one", Arguments: `:1}`}}, []string{` one {"x":1}`}},
		"the name in pieces":              {[]p{{Index: at(0), ID: "a", Name: "read_"}, {Index: at(0), Name: "file"}, {Index: at(0), Arguments: "{}"}}, []string{"a read_file {}"}},
		"the name in pieces, the id too":  {[]p{{Index: at(0), ID: "a", Name: "read_"}, {Index: at(0), ID: "a", Name: "file"}, {Index: at(0), ID: "a", Arguments: "{}"}}, []string{"a read_file {}"}},
		"the name in pieces, no index":    {[]p{{ID: "a", Name: "read_"}, {Name: "file"}, {Arguments: "{}"}}, []string{"a read_file {}"}},
		"the name so far each time":       {[]p{{Index: at(0), ID: "a", Name: "read"}, {Index: at(0), ID: "a", Name: "read_file"}, {Index: at(0), Arguments: "{}"}}, []string{"a read_file {}"}},
		"an empty object in front":        {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: "{}"}, {Index: at(0), Arguments: `{"x"`}, {Index: at(0), Arguments: `:1}`}}, []string{`a one {"x":1}`}},
		"{} in front, id and name each":   {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: "{ }"}, {Index: at(0), ID: "a", Name: "one", Arguments: `{"x":1}`}}, []string{`a one {"x":1}`}},
		"an empty object at the end":      {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: `{"x":1}`}, {Index: at(0), Arguments: "{}"}}, []string{`a one {"x":1}`}},
		"arguments repeated at the end":   {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(0), Arguments: `{"x":1}`}, {Index: at(0), Arguments: `{"x":1}`}}, []string{`a one {"x":1}`}},
		"repeated in pieces":              {[]p{{ID: "a", Name: "one"}, {Arguments: `{"x":1}`}, {Arguments: `{"x"`}, {Arguments: `:1}`}}, []string{`a one {"x":1}`}},
		"the whole call at the end":       {[]p{{Index: at(0), ID: "a", Name: "one"}, {Index: at(0), Arguments: `{"x":1}`}, {Index: at(0), ID: "a", Name: "one", Arguments: `{"x":1}`}}, []string{`a one {"x":1}`}},
		"the whole call in pieces":        {[]p{{ID: "a", Name: "one", Arguments: `{"x":1}`}, {ID: "a", Name: "one", Arguments: `{"x"`}, {Arguments: `:1}`}}, []string{`a one {"x":1}`}},
		"two whole calls with one id":     {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: `{"x":1}`}, {Index: at(0), ID: "a", Name: "one", Arguments: `{"x":2}`}}, []string{`a one {"x":1}`, `a one {"x":2}`}},
		"two with one id, other indexes":  {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: "{}"}, {Index: at(1), ID: "a", Name: "two", Arguments: "{}"}}, []string{"a one {}", "a two {}"}},
		"two objects":                     {[]p{{ID: "a", Name: "one", Arguments: `{"x":1}{"x":2}`}}, []string{`a one {"x":1}{"x":2}`}},
		"a brace too many":                {[]p{{ID: "a", Name: "one", Arguments: `{"x":1}}`}}, []string{`a one {"x":1}}`}},
		"braces in texts":                 {[]p{{ID: "a", Name: "one", Arguments: `{"x":"}\"`}, {Arguments: `{"}`}, {Arguments: "\n"}}, []string{`a one {"x":"}\"{"}`}},
		"no JSON":                         {[]p{{ID: "a", Name: "one", Arguments: "x = "}, {Arguments: "1"}}, []string{"a one x = 1"}},
		"an empty piece":                  {[]p{{}, {Index: at(0)}, {Arguments: " "}}, nil},
		"an id and nothing else":          {[]p{{ID: "a"}}, []string{"a  "}},
		"an id behind a whole call":       {[]p{{ID: "a", Name: "one", Arguments: "{}"}, {ID: "b"}}, []string{"a one {}"}},
		"marked beginnings":               {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: `{"x":1}`, Begins: true}, {Index: at(0), ID: "a", Name: "one", Arguments: `{"x":1}`, Begins: true}}, []string{`a one {"x":1}`, `a one {"x":1}`}},
		"arguments behind a marked one":   {[]p{{Index: at(0), ID: "a", Name: "one", Arguments: `{"y":0}`, Begins: true}, {Index: at(0), Arguments: ""}, {Index: at(0), Arguments: `{"x":1}`}}, []string{`a one {"x":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := joined(row.pieces); !slices.Equal(got, row.want) {
				t.Errorf("calls %q, want %q", got, row.want)
			}
		})
	}
}

// TestManyPiecesAreLinear: the work is in proportion to the bytes, whatever comes. Quadratic
// work would take hours here.
func TestManyPiecesAreLinear(t *testing.T) {
	for name, piece := range map[string]func(n int) calls.Piece{
		"calls":                 func(n int) calls.Piece { return calls.Piece{ID: fmt.Sprint(n), Name: "one", Arguments: "{}"} },
		"nameless calls":        func(n int) calls.Piece { return calls.Piece{Index: at(int64(n)), Name: "one"} },
		"pieces":                func(n int) calls.Piece { return calls.Piece{Arguments: "[" + strings.Repeat(" ", n%3)} },
		"pieces behind the end": func(n int) calls.Piece { return calls.Piece{Arguments: "{}" + strings.Repeat(" ", n%3)} },
		"objects with one id": func(n int) calls.Piece {
			return calls.Piece{ID: "a", Name: "one", Arguments: fmt.Sprint(`{"x":`, n, `}`)}
		},
		"indexes without a begin": func(n int) calls.Piece { return calls.Piece{Index: at(int64(n)), Arguments: "1"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a calls.Assembler
			for n := range 100_000 {
				a.Add(piece(n))
			}
			a.Calls()
		})
	}
}
