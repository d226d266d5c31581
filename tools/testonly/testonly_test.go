package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is a repository. Comments name what no program uses.
var tree = map[string]string{
	"go.mod": "module " + module + "\n\ngo 1.26\n",
	"cmd/main.go": `package main

import (
	"fmt"

	_ "` + module + `/pkg/gen/harness/v1"
	"` + module + `/pkg/shape"
)

func main() {
	s := shape.New()
	fmt.Println(s, s.Area(), shape.Largest[int](1), shape.Second, shape.Colour(""))
	var e error = shape.Failure{}
	_ = e
}
`,
	"examples/main.go": "package main\n\nimport \"" + module + "/pkg/shape\"\n\nfunc main() { shape.OfExamples() }\n",
	"services/empty/doc.go": `// Package empty groups others.
package empty
`,
	"pkg/shape/shape.go": `package shape

const (
	First = iota
	Second
	ThirdOfAnEnum
)

type Colour string

const Red Colour = "red"

const Unused = 1 // unused: pkg/shape.Unused

var table = []int{1} // unused: pkg/shape.table

var Table = table // unused: pkg/shape.Table

type Shape struct{ area int }

func New() *Shape { return &Shape{area: helper()} }

func helper() int { return registered }

var registered = register()

var _ = sideEffect()

func register() int { return 0 }

func sideEffect() int { return 0 }

func init() { fromInit() }

func fromInit() {}

func (s *Shape) Area() int { return s.area }

func (s *Shape) String() string { return "shape" }

func (s *Shape) Perimeter() int { return perimeter(s) } // unused: pkg/shape.Shape.Perimeter

func perimeter(*Shape) int { return onlyForUnused() } // unused: pkg/shape.perimeter

func onlyForUnused() int { return 0 } // unused: pkg/shape.onlyForUnused

type Failure struct{}

func (Failure) Error() string { return "" }

func (Failure) Unwrap() error { return nil }

type Forgotten struct{} // unused: pkg/shape.Forgotten

func (Forgotten) Method() {}

func Largest[T any](t T) T { return t }

func ForOthers() {}

func Allowed() {}

func OfExamples() {}
`,
	"pkg/shape/shape_plan9.go":        "package shape\n\nfunc plan9() { ForOthers() }\n",
	"pkg/shape/shape_test.go":         "package shape\n\nfunc use() { ForTests(); _ = Unused; _ = Table; _ = onlyForUnused() }\n\nfunc ForTests() {}\n",
	"pkg/kittest/kit.go":              "package kittest\n\nfunc Start() {}\n",
	"pkg/lost/lost.go":                "package lost // unused: pkg/lost\n\nfunc Lost() {}\n",
	"pkg/gen/harness/v1/generated.go": "package harnessv1\n\nfunc Generated() {}\n",
}

func TestReports(t *testing.T) {
	dir := t.TempDir()
	for name, text := range tree {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := check(dir, "pkg/shape.Allowed — the test names it\npkg/shape.New — not needed\n", &out); err == nil {
		t.Error("the check passes")
	}
	want := []string{"tools/testonly/allowed.txt: pkg/shape.New: not needed"}
	for name, text := range tree {
		for i, line := range strings.Split(text, "\n") {
			if _, unused, ok := strings.Cut(line, "// unused: "); ok {
				want = append(want, fmt.Sprintf("%s:%d: %s is used by no program", name, i+1, unused))
			}
		}
	}
	slices.Sort(want)
	if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got, want) {
		t.Errorf("reported\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
