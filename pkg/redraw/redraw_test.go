package redraw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestText has what tools print, as they print it, and what a person sees.
func TestText(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"tqdm": {
			"\r  0%|          | 0/3 [00:00<?, ?it/s]\r 33%|███▎      | 1/3 [00:00<00:00, 19.9it/s]\r100%|██████████| 3/3 [00:00<00:00, 19.9it/s]\nafter\n",
			"100%|██████████| 3/3 [00:00<00:00, 19.9it/s]\nafter\n",
		},
		"tqdm that leaves nothing": {
			"before\n\r  0%|     | 0/2\r 50%|##   | 1/2\r100%|#####| 2/2\r                \rafter\n",
			"before\nafter\n",
		},
		"tqdm, two bars": {
			"a:   0%| | 0/2\n\rb:   0%| | 0/2\x1b[A\ra:  50%| | 1/2\n\rb: 100%| | 2/2\x1b[A\ra: 100%| | 2/2\n\n",
			"a: 100%| | 2/2\nb: 100%| | 2/2\n",
		},
		"git clone --progress": {
			"Cloning into 'x'...\nremote: Counting objects:  50% (1/2)\x1b[K\rremote: Counting objects: 100% (2/2)\x1b[K\rremote: Counting objects: 100% (2/2), done.\x1b[K\n" +
				"Receiving objects:  50% (1/2)\rReceiving objects: 100% (2/2)\rReceiving objects: 100% (2/2), done.\n",
			"Cloning into 'x'...\nremote: Counting objects: 100% (2/2), done.\nReceiving objects: 100% (2/2), done.\n",
		},
		"git rebase": {"Rebasing (1/2)\rRebasing (2/2)\r\r\x1b[KSuccessfully rebased and updated refs/heads/main.\n", "Successfully rebased and updated refs/heads/main.\n"},
		"curl": {
			"  % Total    % Received\n                       \n\r  0     0    0     0\r 40  100k   40  40k\r100  100k  100  100k\n{}",
			"  % Total    % Received\n                       \n100  100k  100  100k\n{}",
		},
		"wget --progress=bar": {"\rx    0%[      ]   0\rx   50%[==>   ] 1.0K\rx  100%[=====>] 2.0K  in 0s\n\ndone\n", "x  100%[=====>] 2.0K  in 0s\n\ndone\n"},
		"pip": {
			"Downloading x.whl (1 kB)\n\x1b[?25l   \x1b[38;5;237m━━━━\x1b[0m \x1b[32m0.0/1.0 kB\x1b[0m \x1b[31m?\x1b[0m\r\x1b[2K   \x1b[91m━━━━\x1b[0m \x1b[32m1.0/1.0 kB\x1b[0m\n\x1b[?25hInstalled\n",
			"Downloading x.whl (1 kB)\n   ━━━━ 1.0/1.0 kB\n\x1b[?25hInstalled\n",
		},
		"npm": {"\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0K⠸\x1b[1G\x1b[0K\nadded 2 packages in 1s\n", "\nadded 2 packages in 1s\n"},
		"yarn": {
			"[1/4] Resolving\n\x1b[2K\x1b[1G[----] 0/2\x1b[2K\x1b[1G[##--] 1/2\x1b[2K\x1b[1G[2/4] Fetching\n",
			"[1/4] Resolving\n[2/4] Fetching\n",
		},
		"docker pull": {
			"latest: Pulling from x\n\n\x1b[1A\x1b[2K\ra1: Pulling fs layer \r\x1b[1B\n\x1b[1A\x1b[2K\rb2: Pulling fs layer \r\x1b[1B\x1b[2A\x1b[2K\ra1: Downloading [=>  ]\r\x1b[2B" +
				"\x1b[2A\x1b[2K\ra1: Pull complete \r\x1b[2B\x1b[1A\x1b[2K\rb2: Pull complete \r\x1b[1BDigest: sha256:0\n",
			"latest: Pulling from x\na1: Pull complete\nb2: Pull complete\nDigest: sha256:0\n",
		},
		"docker buildx": {
			"[+] Building 0.1s (0/2)\n => [1/2] FROM x\n\x1b[1A\x1b[1A\x1b[0G\x1b[?25l[+] Building 0.2s (1/2)\n\x1b[34m => [1/2] FROM x\n\x1b[0m => [2/2] RUN y\n\x1b[?25h\x1b[1A\x1b[1A\x1b[1A\x1b[0G\x1b[?25l[+] Building 0.3s (2/2) FINISHED\n => [1/2] FROM x\n => [2/2] RUN y\n\x1b[?25h",
			"[+] Building 0.3s (2/2) FINISHED\n => [1/2] FROM x\n => [2/2] RUN y\n\x1b[?25h",
		},
		"cargo": {
			"\x1b[32m   Compiling\x1b[0m a v0.1.0\n    Building [====>    ] 1/2: a\r\x1b[K\x1b[32m   Compiling\x1b[0m b v0.1.0\n    Building [========>] 2/2: b\r\x1b[K    Finished `dev` in 1s\n",
			"\x1b[32m   Compiling\x1b[0m a v0.1.0\n   Compiling b v0.1.0\n    Finished `dev` in 1s\n",
		},
		"ninja":                      {"[1/3] CC a.o\x1b[K\r[2/3] CC long_name.o\x1b[K\r[3/3] LINK x\x1b[K\n", "[3/3] LINK x\n"},
		"man":                        {"N\bNA\bAM\bME\bE\n_\bx\n", "NAME\nx\n"},
		"a percentage in backspaces": {"done:   0%\b\b\b\b 50%\b\b\b\b100%\n", "done: 100%\n"},
		"a spinner":                  {"wait |\b/\b-\b\\\b|\b \bok\n", "wait ok\n"},
		"a shorter frame":            {"12345\rab\n", "ab345\n"},
		"a frame without an end":     {"10%\r20%", "20%"},
		"a wide character":           {"日本語\rab\n", "ab本語\n"},
		"half of a wide character":   {"日本語\ra\n", "a 本語\n"},
		"a mark of no width":         {"xx\re\u0301\n", "e\u0301x\n"},
		"Latin-1":                    {"1\r\xe9t\xe9\n", "\xe9t\xe9\n"},
		"a tab":                      {"old text\rab\tc\n1\r2\t3\n", "abd textc\n2\t3\n"},
		"rows that are erased":       {"a\nb\nc\n\x1b[3A\x1b[Jdone\n", "done\n"},
		"rows that are cleared":      {"a\nb\n\x1b[2A\x1b[2Kdone\x1b[B\x1b[2K", "done\n"},
		"above the first row":        {"a\n\x1b[9AB\n", "B\n"},
		"from the middle of a line":  {"a\nbcd\x1b[AX\n", "a  X\nbcd"},
		"to the right":               {"\rab\x1b[999C|\n", "ab" + strings.Repeat(" ", columns-3) + "|\n"},
		"full-screen programs":       {"\x1b[?1049h\x1b[H\x1b[2J1\x1b[2;3Hx", "\x1b[?1049h\x1b[H\x1b[2J1\x1b[2;3Hx"},
		"a screen that is cleared":   {"1%\r2%\x1b[H\x1b[2Jnew\n", "2%\x1b[H\x1b[2Jnew\n"},
		"an end within a sequence":   {"1%\r2%\x1b[", "2%"},
		"a title in a frame":         {"1%\x1b]0;title\a\r2%\x1b]0;title\x1b\\\n", "2%\n"},
		"a bell in a frame":          {"1%\r2%\a\n", "2%\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Text(c.text); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestOrdinaryTextPasses: text that draws over nothing is the same, byte for byte.
func TestOrdinaryTextPasses(t *testing.T) {
	for _, text := range []string{
		"", "\n", "a", "a\n", "a\r\nb\r\n", "a\r\r\nb\r\r\n", "a\r", "\r\n\r\n", "  trailing  \n\n\n", "\t x\ty \n", "\x00\x01\xff\xfe\n", "日本語\n",
		"\x1b[1;31merror\x1b[0m: x\n", "\x1b[01;31m\x1b[Kmatch\x1b[m\x1b[K:1\n", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "\x1b]0;title\a$ ", "\x1b(B\x1b[m\n",
		"\x1b[?25l\x1b[?25h\n", "\x1b", "\x1b[", "\x1b[31", "\x1b]0;no end", "\x1b\x1b\n", "\x1b[Cright\n", "\x1b[J\n", "a\x1b[\nb\n",
		strings.Repeat("x", 5*reach) + "\r\n", strings.Repeat("a line of text\r\n", reach), "\x1b]" + strings.Repeat("y", maxSequence) + "\n",
	} {
		for _, size := range []int{1, 7, len(text) + 1} {
			if got := inPieces(t, text, func() int { return size }); got != text {
				t.Errorf("%.40q in pieces of %d: got %.80q", text, size, got)
			}
		}
	}
}

// inPieces returns a text after a Filter that it is written to in pieces of some sizes.
func inPieces(t testing.TB, text string, size func() int) string {
	var out bytes.Buffer
	f := NewFilter(&out)
	for p := []byte(text); len(p) > 0; {
		n := min(len(p), size())
		if wrote, err := f.Write(p[:n]); wrote != n || err != nil {
			t.Fatal(wrote, err)
		}
		p = p[n:]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// display is a plain terminal of any height, without a bound and without wide characters.
func display(text string) string {
	rows, x, y := [][]byte{nil}, 0, 0
	for p := []byte(text); len(p) > 0; {
		n, m := decode(p)
		if n == 0 {
			break
		}
		p = p[n:]
		row := rows[y]
		switch m.op {
		case put:
			for len(row) <= x {
				row = append(row, ' ')
			}
			row[x] = m.text[0]
			x++
		case feed:
			if y++; y == len(rows) {
				rows = append(rows, nil)
			}
			x = 0
			continue
		case home:
			x = 0
		case left:
			x = max(0, x-m.n)
		case up:
			y = max(0, y-m.n)
			continue
		case down:
			y = min(len(rows)-1, y+m.n)
			continue
		case eraseLine:
			row = nil
		case eraseAfter:
			row = row[:min(x, len(row))]
		case eraseBelow:
			row, rows = row[:min(x, len(row))], rows[:y+1]
		}
		rows[y] = row
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// randomText returns a text of a program that draws.
func randomText(random *rand.Rand) string {
	parts := []string{"a", "bc", "50%", " ", "\n", "\n", "\r", "\r\n", "\b", "\x1b[K", "\x1b[2K", "\x1b[A", "\x1b[2A", "\x1b[B", "\x1b[J", "\x1b[2D", "\x1b[31m", "\x1b[0m", "\a"}
	var b strings.Builder
	for range random.IntN(40) {
		b.WriteString(parts[random.IntN(len(parts))])
	}
	return b.String()
}

// TestTheLastFrameIsKept: a terminal shows the same after the text as after the filtered text, in
// whatever pieces it was written, and nothing is left that draws over.
func TestTheLastFrameIsKept(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		text := randomText(random)
		got := Text(text)
		if want := display(text); display(got) != want {
			t.Fatalf("%q: got %q\nshows %q\nwant  %q", text, got, display(got), want)
		}
		if pieces := inPieces(t, text, func() int { return 1 + random.IntN(4) }); pieces != got {
			t.Fatalf("%q: got %q in pieces, %q as a whole", text, pieces, got)
		}
		if again := Text(got); again != got {
			t.Fatalf("%q: got %q, and after another pass %q", text, got, again)
		}
	}
}

// counter counts bytes.
type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

// TestAFilterIsBounded: what it keeps does not grow with the text, and frames leave nothing.
func TestAFilterIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		part string
		most int // bytes that pass for each part
	}{
		"frames":                  {"\r" + strings.Repeat("#", 70), 0},
		"a line without an end":   {strings.Repeat("x", 100), 100},
		"lines":                   {"line\n", 5},
		"a row that grows":        {"\rx\x1b[K" + strings.Repeat("y", 50) + "\x1b[99C", 60},
		"rows without an end":     {"a\n\x1b[A\x1b[B\x1b[B", 2},
		"rows that go up":         {"a\nb\n\x1b[2Ac\nd\n\x1b[A", 4},
		"carriage returns":        {"\r", 1},
		"sequences without ends":  {"\x1b]0;", 5},
		"marks that join a char":  {"\ra" + strings.Repeat("\u0301", 20), 0},
		"tabs":                    {"\rx\t\t\t\t", 4},
		"a tab after a redraw":    {"\t\b", 1},
		"backspaces after a char": {"a\b", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out counter
			f := NewFilter(&out)
			_, _ = f.Write([]byte("x\b")) // the line is drawn over
			const parts = 20_000
			for range parts {
				_, _ = f.Write([]byte(c.part))
				kept := cap(f.text) + cap(f.partial)
				if f.screen != nil {
					kept += f.screen.size
				}
				if kept > 8*reach {
					t.Fatalf("it keeps %d", kept)
				}
			}
			_ = f.Close()
			if most := parts*c.most + 4*reach; out.n > most {
				t.Errorf("%d bytes passed, want at most %d", out.n, most)
			}
		})
	}
}

// fails is a writer that fails.
type fails struct{}

func (fails) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestAWriterThatFails(t *testing.T) {
	f := NewFilter(fails{})
	_, _ = f.Write([]byte("a\n"))
	if err := f.Close(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Close returns %v", err)
	}
}

// TestJoinedMarksAreBounded: a character with endless marks takes no more than its bound, with the last mark.
func TestJoinedMarksAreBounded(t *testing.T) {
	const mark = "\u0301"
	if got := Text("x\re" + strings.Repeat(mark, 10_000)); len(got) < maxJoined || len(got) >= maxJoined+len(mark) {
		t.Errorf("got %d bytes, want the bound of %d and at most one mark more", len(got), maxJoined)
	}
}

func FuzzFilter(f *testing.F) {
	for _, text := range []string{"a\rb\n", "a\nb\n\x1b[2Ac", "\x1b[", "\x1b]0;x\a\b", "日\b本\te\u0301\x1b[3G", "\x1b[5C\x1b[K\x1b[1J"} {
		f.Add([]byte(text), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		whole := Text(string(text))
		if pieces := inPieces(t, string(text), func() int { return int(size%16) + 1 }); pieces != whole {
			t.Errorf("%q: got %q in pieces, %q as a whole", text, pieces, whole)
		}
		if plain(text) && whole != string(text) {
			t.Errorf("%q: got %q", text, whole)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	line := strings.Repeat("ok  \tgithub.com/x/y\t0.012s\n", 1000)
	for name, text := range map[string]string{
		"ordinary": line, "CRLF": strings.ReplaceAll(line, "\n", "\r\n"), "colours": strings.ReplaceAll(line, "ok", "\x1b[32mok\x1b[0m"), "frames": strings.ReplaceAll(line, "\n", "\r"),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f := NewFilter(io.Discard)
				_, _ = fmt.Fprint(f, text)
				_ = f.Close()
			}
		})
	}
}
