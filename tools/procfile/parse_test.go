package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got, err := parse("Procfile", strings.NewReader("# what is first\n\n nats : exec nats-server -c a.conf\r\nturn-2: A=1 exec harness --nats nats://127.0.0.1:4222 # with a comment\n"))
	want := []entry{{"nats", "exec nats-server -c a.conf"}, {"turn-2", "A=1 exec harness --nats nats://127.0.0.1:4222 # with a comment"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for text, says := range map[string]string{
		"":                                      "no entries",
		"# nothing\n":                           "no entries",
		"a: x\n\nnats-server\n":                 "Procfile:3: want NAME: COMMAND",
		"a b: x\n":                              `Procfile:1: name "a b"`,
		": x\n":                                 `Procfile:1: name ""`,
		"a: x\nb:\n":                            "Procfile:2: b has no command",
		"a: x\nb: y\na: z\n":                    "Procfile:3: a is named in line 1 already",
		"a: x\x00y\n":                           "Procfile:1: the command of a holds a NUL",
		"a: " + strings.Repeat("x", 1<<17):      "Procfile: ",
		strings.Repeat("n", 65) + ": x\n":       "at most 64",
		"nats:x\nturn =x\n":                     "Procfile:2:",
		"\n\n\nstopdecision; harness serve a\n": "Procfile:4:",
	} {
		got, err := parse("Procfile", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %q, %v; want %s", text, got, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("nats: exec nats-server\n# c\n\nturn: x")
	f.Add("a b\r\n:")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parse("Procfile", strings.NewReader(text))
		if (err == nil) != (len(entries) > 0) {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		for _, e := range entries {
			if !nameForm.MatchString(e.name) || e.command == "" || strings.ContainsAny(e.command, "\n\x00") {
				t.Errorf("%q", e)
			}
		}
	})
}

func TestNextPause(t *testing.T) {
	var pauses []string
	pause := time.Duration(0)
	for range 7 {
		pause = nextPause(pause, time.Second)
		pauses = append(pauses, pause.String())
	}
	if got := strings.Join(pauses, " "); got != "200ms 400ms 800ms 1.6s 3.2s 5s 5s" {
		t.Errorf("pauses %s", got)
	}
	if got := nextPause(longPause, settled); got != shortPause {
		t.Errorf("after a long life %s", got)
	}
}

func TestColours(t *testing.T) {
	var text strings.Builder
	o := &output{w: &text, colours: true, width: 4}
	o.label("nats", 0).line([]byte("ready"))
	o.label("a", 1).note("is %s", "done")
	if want := "\x1b[36mnats |\x1b[0m ready\n\x1b[33ma    *\x1b[0m is done\n"; text.String() != want {
		t.Errorf("%q, want %q", text.String(), want)
	}
}
