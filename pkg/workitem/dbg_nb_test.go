package workitem

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestDbgNB(t *testing.T) {
	for _, f := range []string{"testdata/dev.jsonl", "testdata/dev2.jsonl", "/tmp/nb/own.jsonl", "/tmp/nb/own2.jsonl"} {
		b, _ := os.ReadFile(f)
		tp, fp, fn, lv, st := 0, 0, 0, 0, 0
		for _, raw := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			var a struct{ ID, Kind, Note, Label, Level, Content, Stripped string }
			json.Unmarshal([]byte(raw), &a)
			want := a.Label + a.Level
			got, s, why := Narration(a.Content)
			switch {
			case want != "CLEAN" && got == Clean:
				fn++
				fmt.Println("MISS", a.ID, want, a.Note+a.Kind)
			case want == "CLEAN" && got != Clean:
				fp++
				fmt.Println("FP", a.ID, got, a.Note, why)
			case want != "CLEAN":
				tp++
				if got.String() != want {
					lv++
					fmt.Println("LEVEL", a.ID, got, "want", want, why)
				} else if got == Light && s != a.Stripped && strings.TrimSpace(s) != strings.TrimSpace(a.Stripped) {
					st++
					fmt.Println("STRIP", a.ID, why)
				}
			}
		}
		fmt.Printf("%s P %.3f R %.3f tp %d fp %d fn %d level %d strip %d\n", f, float64(tp)/float64(tp+fp), float64(tp)/float64(tp+fn), tp, fp, fn, lv, st)
	}
}

func (s signs) String() string {
	names := []string{"hails", "hands", "will", "look", "did", "text", "part", "request", "given", "offer", "polite", "saved", "done", "model", "gaps", "size", "onward", "thinks", "sorry", "you", "me", "whole", "form", "letter", "voice"}
	var out []string
	for n, name := range names {
		if s&(1<<n) != 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, "+")
}

func TestDbgSigns(t *testing.T) {
	b, _ := os.ReadFile("testdata/dev2.jsonl")
	for _, raw := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var a struct{ ID, Level, Content, Stripped string }
		json.Unmarshal([]byte(raw), &a)
		fmt.Println("==", a.ID, a.Level)
		for _, l := range strings.Split(a.Content, "\n") {
			mark := " "
			if a.Level == "LIGHT" && !strings.Contains(a.Stripped, l) {
				mark = "-"
			}
			for _, u := range utterances(bare(l)) {
				s := phrases.read(u.words, u.lead)
				var w []string
				for _, x := range u.words {
					w = append(w, x.text)
				}
				if s&^signText != 0 {
					fmt.Printf("%s [%v] %.110s\n", mark, s, strings.Join(w, " "))
				}
			}
		}
	}
}

func TestDbgOne(t *testing.T) {
	want := strings.Fields(os.Getenv("IDS"))
	for _, f := range []string{"testdata/dev.jsonl", "testdata/dev2.jsonl", "/tmp/nb/own.jsonl", "/tmp/nb/own2.jsonl"} {
		b, _ := os.ReadFile(f)
		for _, raw := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			var a struct{ ID, Label, Level, Content, Stripped string }
			json.Unmarshal([]byte(raw), &a)
			for _, id := range want {
				if a.ID != id {
					continue
				}
				d := readDocument(a.Content)
				h, tl := d.ends()
				again := d.hearOut(h, tl)
				lv, _, why := Narration(a.Content)
				p, need := d.preface()
				fmt.Printf("== %s %s%s personal %v addressing %v program %v tabular %v saluted %v head %d tail %d again %v preface %d/%d -> %v %s\n", id, a.Label, a.Level, d.personal, d.addressing, d.program, d.tabular, d.saluted, h, tl, again, p, need, lv, why)
				for n := range d.order {
					l := d.at(n)
					fmt.Printf("  %d k%d prot %v w%d o%v plain %d own %v [%v] r%d/%v | %.90s\n", n, l.kind, l.protected, l.says.weight, l.says.opens, l.says.plain, l.says.own, l.says.signs, l.remark.class, l.remark.strong, l.raw)
				}
			}
		}
	}
}

func TestDbgWhy(t *testing.T) {
	for _, u := range utterances(os.Getenv("TXT")) {
		for name, table := range map[string]map[signs][]string{"en": english, "de": german, "fr": french, "es": spanish} {
			for s, list := range table {
				for _, text := range list {
					all := map[string]string{}
					for _, x := range []map[string]string{words, foreignWords} {
						for n, l := range x {
							all[n] = l
						}
					}
					b := newPhrasebook(all, map[signs][]string{s: {text}})
					for i := range u.words {
						u.words[i].class = b.lexicon[u.words[i].text]
						if u.words[i].class == 0 && fileLike(u.words[i].text) {
							u.words[i].class = b.names["file"]
						}
					}
					if b.read(u.words, u.lead) != 0 {
						fmt.Println(name, s, text)
					}
				}
			}
		}
	}
}
