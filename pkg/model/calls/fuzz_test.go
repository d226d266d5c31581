package calls_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/calls"
)

// habits are the ways in which a service cuts its calls into pieces.
type habits struct {
	index string // right, none, zero, other, counts
	id    string // head, each, new, late, none
	name  string // head, each, pieces
	front bool   // an empty object comes first
	again string // no, arguments, call: the part of a call that its end repeats
	whole bool   // one piece for each call
	turns bool   // calls grow in turns
}

// habitsOf draws habits that leave no doubt which piece belongs where.
func habitsOf(r *rand.Rand) habits {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	h := habits{
		index: pick("right", "none", "zero", "other", "counts"), id: pick("head", "each", "new", "late", "none"),
		name: pick("head", "each", "pieces"), front: r.IntN(4) == 0, again: pick("no", "no", "arguments", "call"), whole: r.IntN(4) == 0,
	}
	if h.id == "new" && h.name == "pieces" || h.id == "none" && h.again == "call" || h.id == "new" && h.again == "call" {
		h.name, h.again = "head", "no"
	}
	if h.id == "late" && h.index != "right" { // only the place tells whose id it is
		h.id = "head"
	}
	h.whole = h.whole && h.id != "late"
	if h.id == "new" && (h.index == "counts" || h.index == "other") {
		h.index = "right"
	}
	if h.id == "none" && h.index != "right" { // only the names and the ends of the arguments tell calls apart
		h.index, h.name, h.front = "none", "head", false
		if h.again == "call" {
			h.again = "no"
		}
	}
	if h.id == "each" && h.name == "pieces" && (h.index == "counts" || h.index == "other") { // or two calls with one id
		h.name = "head"
	}
	if h.id == "new" && h.name == "each" { // an object may begin where a piece does
		h.name = "head"
	}
	h.turns = h.index == "right" && h.id != "new" && h.id != "late" && r.IntN(2) == 0 || h.id == "each" && h.index != "other" && h.index != "zero" && r.IntN(4) == 0
	return h
}

// stream returns calls and their pieces.
func stream(seed uint64) (made []calls.Call, pieces []calls.Piece, h habits) {
	r := rand.New(rand.NewPCG(seed, 1))
	h = habitsOf(r)
	var queues [][]calls.Piece
	serial := 0
	for n := range 1 + r.IntN(4) {
		c := calls.Call{Name: []string{"read_file", "write_file", "run_command", "list"}[r.IntN(4)], Arguments: object(r, n), Complete: true}
		if h.id != "none" {
			c.ID = fmt.Sprintf("call_%d", n)
		}
		made = append(made, c)
		queues = append(queues, h.pieces(r, &c, int64(n), &serial))
	}
	if !h.turns {
		return made, slices.Concat(queues...), h
	}
	for i := range queues { // the heads come in order
		pieces, queues[i] = append(pieces, queues[i][0]), queues[i][1:]
	}
	for len(queues) > 0 {
		i := r.IntN(len(queues))
		if len(queues[i]) == 0 {
			queues = slices.Delete(queues, i, i+1)
			continue
		}
		pieces, queues[i] = append(pieces, queues[i][0]), queues[i][1:]
	}
	return made, pieces, h
}

// pieces cuts a call.
func (h habits) pieces(r *rand.Rand, c *calls.Call, n int64, serial *int) []calls.Piece {
	list := []calls.Piece{{Name: c.Name}}
	if h.name == "pieces" {
		cut := 1 + r.IntN(len(c.Name)-1)
		list = []calls.Piece{{Name: c.Name[:cut]}, {Name: c.Name[cut:]}}
	}
	last := len(list) - 1
	text := c.Arguments
	switch {
	case h.front:
		list[last].Arguments = "{}"
	case h.whole:
		list[last].Arguments, text = text, ""
	}
	for text != "" {
		cut := 1 + r.IntN(len(text))
		if r.IntN(8) == 0 {
			cut = 0
		}
		list = append(list, calls.Piece{Arguments: text[:cut]})
		text = text[cut:]
	}
	switch h.again {
	case "arguments":
		list = append(list, calls.Piece{Arguments: c.Arguments})
	case "call":
		list = append(list, calls.Piece{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	for i := range list {
		h.head(&list[i], c, n, i, serial)
	}
	return list
}

// head gives the piece number i of the call number n its index, id and name.
func (h habits) head(p *calls.Piece, c *calls.Call, n int64, i int, serial *int) {
	*serial++
	switch h.index {
	case "right":
		p.Index = at(n)
	case "zero":
		p.Index = at(0)
	case "other": // the arguments have another index than the head
		p.Index = at(2 * n)
		if i > 0 {
			p.Index = at(2*n + 1)
		}
	case "counts":
		p.Index = at(int64(*serial))
	}
	switch {
	case i == 0 && h.id != "late", h.id == "each", i == 1 && h.id == "late":
		p.ID = c.ID
	case h.id == "new":
		p.ID = fmt.Sprintf("piece_%d", *serial)
	}
	if h.name == "each" {
		p.Name = c.Name
	}
}

// object returns arguments that no other call of the answer has.
func object(r *rand.Rand, n int) string {
	values := []any{"a b", "{\"x\": [", "ende}", "\\", "\"", 1.5, nil, map[string]any{"x": []any{}}, []any{"{", map[string]any{"y": " "}}}
	o := map[string]any{"n": n}
	for range r.IntN(4) {
		o[[]string{"path", "content", "{", "}"}[r.IntN(4)]] = values[r.IntN(len(values))]
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(text), ",", ", ")
}

// checkStream joins the pieces of a stream.
func checkStream(t *testing.T, seed uint64) {
	t.Helper()
	made, pieces, h := stream(seed)
	var want []string
	for _, c := range made {
		want = append(want, c.ID+" "+c.Name+" "+c.Arguments)
	}
	if got := joined(pieces); !slices.Equal(got, want) {
		t.Fatalf("seed %d, %+v\ncalls %q\nwant  %q\npieces %+v", seed, h, got, want, pieces)
	}
}

var streams = flag.Uint64("streams", 20_000, "streams of TestStreams")

// TestStreams: no call is invented, lost or joined, whatever habits a service has.
func TestStreams(t *testing.T) {
	for seed := range *streams {
		checkStream(t, seed)
	}
}

func FuzzStreams(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkStream(t, seed) })
}
