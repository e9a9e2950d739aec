package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lines returns n lines of Go that do nothing.
func lines(n int) string { return strings.Repeat("\t_ = 1\n", n) }

// rows returns a guarantees page with a row for every requirement but those left out, and more rows.
func rows(without int, more ...string) string {
	var b strings.Builder
	b.WriteString("| id | kind | requirement | state | proof |\n|---|---|---|---|---|\n")
	for n := 1; n <= requirementsLast; n++ {
		if n != without {
			fmt.Fprintf(&b, "| R%d | B | words | not yet | |\n", n)
		}
	}
	return b.String() + strings.Join(more, "\n")
}

// testCase is a small tree for one check, and the places it must find: none for a good one.
type testCase struct {
	check   string
	name    string
	sources map[string]string
	want    []string
}

// goFile is a tree of one file in a package of a known rank.
func goFile(path, body string) map[string]string {
	dir := filepath.Dir(path)
	return map[string]string{path: "// Package x is here.\npackage " + filepath.Base(dir) + "\n" + body}
}

var cases = []testCase{
	{"rank", "higher", goFile("internal/storage/a.go", `import _ "strandline.dev/internal/server"`), []string{"internal/storage/a.go"}},
	{"rank", "own", goFile("internal/wire/a.go", `import _ "strandline.dev/internal/record"`), []string{"internal/wire/a.go"}},
	{"rank", "unknown package", goFile("internal/novel/a.go", ""), []string{"internal/novel/a.go"}},
	{"rank", "imports unknown", goFile("internal/node/a.go", `import _ "strandline.dev/internal/novel"`), []string{"internal/node/a.go"}},
	{"rank", "lower, family, other modules", goFile("internal/config/load/a.go", `import (
		_ "strandline.dev/internal/config"
		_ "strandline.dev/internal/kafka"
		_ "go.yaml.in/yaml/v3"
	)`), nil},
	{"rank", "tests may", goFile("internal/storage/a_test.go", `import _ "strandline.dev/internal/server"`), nil},

	{"shipped", "fakes", goFile("internal/storage/a.go", `import _ "strandline.dev/internal/sys/systest"`), []string{"internal/storage/a.go"}},
	{"shipped", "fakes in the family", goFile("internal/sys/a.go", `import _ "strandline.dev/internal/sys/systest"`), []string{"internal/sys/a.go"}},
	{"shipped", "testing", goFile("internal/isr/a.go", `import _ "testing"`), []string{"internal/isr/a.go"}},
	{"shipped", "in tests", goFile("internal/storage/a_test.go", `import _ "strandline.dev/internal/sys/systest"`), nil},

	{"pure", "import", goFile("internal/isr/a.go", `import _ "os"`), []string{"internal/isr/a.go"}},
	{"pure", "shell", goFile("internal/isr/a.go", `import _ "strandline.dev/internal/sys"`), []string{"internal/isr/a.go"}},
	{"pure", "random", goFile("internal/metadata/a.go", `import _ "math/rand/v2"`), []string{"internal/metadata/a.go"}},
	{"pure", "clock", goFile("internal/isr/a.go", "import \"time\"\nvar x = time.Now()"), []string{"internal/isr/a.go"}},
	{"pure", "renamed clock", goFile("internal/isr/a.go", "import clock \"time\"\nvar x = clock.Now"), []string{"internal/isr/a.go"}},
	{"pure", "goroutine", goFile("internal/wire/a.go", "func f() { go f() }"), []string{"internal/wire/a.go"}},
	{"pure", "channel", goFile("internal/wire/a.go", "var c chan int"), []string{"internal/wire/a.go"}},
	{"pure", "lock", goFile("internal/record/a.go", "import \"sync\"\nvar mu sync.Mutex"), []string{"internal/record/a.go"}},
	{"pure", "prints", goFile("internal/kafka/a.go", "import \"fmt\"\nfunc f() { fmt.Println() }"), []string{"internal/kafka/a.go"}},
	{"pure", "allowed", goFile("internal/record/a.go", `import (
		"fmt"
		"sync"
		"time"

		_ "github.com/klauspost/compress/zstd"
		_ "github.com/twmb/franz-go/pkg/kmsg"
		_ "strandline.dev/internal/kafka"
	)
	var pool sync.Pool
	var text = fmt.Sprint(time.Second)`), nil},
	{"pure", "shells may", goFile("internal/replica/a.go", "import \"time\"\nvar x = time.Now()\nfunc f() { go f() }"), nil},

	{"door", "file", goFile("internal/storage/a.go", "import \"os\"\nvar f, err = os.Open(\"x\")"), []string{"internal/storage/a.go"}},
	{"door", "as a value", goFile("internal/storage/a.go", "import \"os\"\nvar read = os.ReadFile"), []string{"internal/storage/a.go"}},
	{"door", "socket", goFile("internal/server/a.go", "import \"net\"\nvar l, err = net.Listen(\"tcp\", \"\")"), []string{"internal/server/a.go"}},
	{"door", "dialer", goFile("internal/peer/a.go", "import \"net\"\nvar d net.Dialer"), []string{"internal/peer/a.go"}},
	{"door", "system calls", goFile("internal/storage/a.go", `import _ "golang.org/x/sys/unix"`), []string{"internal/storage/a.go"}},
	{"door", "flags are no door", goFile("internal/storage/a.go", "import (\n\"os\"\n\"net\"\n)\nvar flag = os.O_RDWR\nvar l net.Listener"), nil},
	{"door", "sys", goFile("internal/sys/a.go", "import \"os\"\nvar f, err = os.Open(\"x\")"), nil},
	{"door", "cmd", goFile("cmd/strandline/a.go", "import \"os\"\nvar f, err = os.Open(\"x\")"), nil},
	{"door", "a method of that name", goFile("internal/storage/a.go", "func f(os file) { os.Open() }"), nil},

	{"package-name", "clause", map[string]string{"internal/x/a.go": "package util"}, []string{"internal/x/a.go"}},
	{"package-name", "directory", map[string]string{"internal/broker/a.go": "package x"}, []string{"internal/broker/a.go"}},
	{"package-name", "test of it", map[string]string{"internal/x/a_test.go": "package common_test"}, []string{"internal/x/a_test.go"}},
	{"package-name", "good", goFile("internal/storage/a.go", ""), nil},

	{"type-name", "end", goFile("internal/node/a.go", "type ReplicaManager struct{}"), []string{"internal/node/a.go ReplicaManager"}},
	{"type-name", "whole", goFile("internal/node/a.go", "type (\n\ty int\n\tinfo struct{}\n)"), []string{"internal/node/a.go info"}},
	{"type-name", "letters of a word", goFile("internal/node/a.go", "type metadata struct{}\ntype Metadata struct{}\ntype Manage int"), nil},

	{"function-lines", "70", goFile("internal/node/a.go", "func f() {\n"+lines(68)+"}"), []string{"internal/node/a.go f"}},
	{"function-lines", "method in a test", goFile("internal/node/a_test.go", "func (l *L[T]) f() {\n"+lines(90)+"}"), []string{"internal/node/a_test.go L.f"}},
	{"function-lines", "69", goFile("internal/node/a.go", "func f() {\n"+lines(67)+"}"), nil},

	{"file-lines", "801", map[string]string{"internal/node/a.go": "package node\n" + strings.Repeat("//\n", 800)}, []string{"internal/node/a.go"}},
	{"file-lines", "800", map[string]string{"internal/node/a.go": "package node\n" + strings.Repeat("//\n", 799)}, nil},
	{"file-lines", "test of 1001", map[string]string{"internal/node/a_test.go": "package node\n" + strings.Repeat("//\n", 1000)}, []string{"internal/node/a_test.go"}},
	{"file-lines", "test of 1000", map[string]string{"internal/node/a_test.go": "package node\n" + strings.Repeat("//\n", 999)}, nil},

	{"interface-methods", "8", goFile("internal/node/a.go", "type I interface { A(); B(); C(); D(); E(); F(); G(); H() }"), []string{"internal/node/a.go I"}},
	{"interface-methods", "7", goFile("internal/node/a.go", "type I interface { A(); B(); C(); D(); E(); F(); G() }"), nil},

	{"parameters", "6", goFile("internal/node/a.go", "func f(a, b, c int, d, e, g string) {}"), []string{"internal/node/a.go f"}},
	{"parameters", "5", goFile("internal/node/a.go", "func f(a, b, c int, d, e string) (x, y int) { return }"), nil},

	{"package-doc", "none", map[string]string{"internal/node/a.go": "package node"}, []string{"internal/node"}},
	{"package-doc", "elsewhere in the package", map[string]string{
		"internal/node/a.go": "package node", "internal/node/a_test.go": "package node_test",
		"internal/node/doc.go": "// Package node is here.\npackage node",
	}, nil},

	{"exported-doc", "function, type, const, method", goFile("internal/node/a.go",
		"func F() {}\n\ntype T int\n\nconst C = 1\n\nvar V, w int\n\nfunc (t *T) M() {}\n"),
		[]string{"internal/node/a.go F", "internal/node/a.go T", "internal/node/a.go C", "internal/node/a.go V", "internal/node/a.go T.M"}},
	{"exported-doc", "type in a group", goFile("internal/node/a.go", "// These are.\ntype (\n\tA int\n\t// B is.\n\tB int\n)"), []string{"internal/node/a.go A"}},
	{"exported-doc", "documented", goFile("internal/node/a.go", `// F does.
func F() {}

// T is.
type T int

// Many are.
const (
	A = 1
	B = 2
)

var (
	V = 1 // is
)

func (t T) String() string { return "" }

func (h hidden) M() {}

func f() {}
`), nil},

	{"sentinel", "elsewhere", goFile("internal/node/a.go", "var (\n\t// ErrX means.\n\tErrX error\n)"), []string{"internal/node/a.go ErrX"}},
	{"sentinel", "in errors.go", goFile("internal/node/errors.go", "// ErrX means.\nvar ErrX error"), nil},
	{"sentinel", "other names", goFile("internal/node/a.go", "// Errors counts.\nvar Errors int\nvar errX error"), nil},

	{"marker", "line", goFile("internal/node/a.go", "// TO"+"DO: more"), []string{"internal/node/a.go"}},
	{"marker", "block in a test", goFile("internal/node/a_test.go", "/* FIX"+"ME */"), []string{"internal/node/a_test.go"}},
	{"marker", "in a string", goFile("internal/node/a.go", `var s = "TO`+`DO"`), nil},

	{"skip", "skip", goFile("internal/node/a_test.go", "import \"testing\"\nfunc TestX(t *testing.T) { t.Skip() }"), []string{"internal/node/a_test.go"}},
	{"skip", "conditional", goFile("test/chaos/a_test.go", "import \"testing\"\nfunc f(tb testing.TB) { if x { tb.Skipf(\"\") } }"), []string{"test/chaos/a_test.go"}},
	{"skip", "a decoder's", goFile("internal/node/a_test.go", "func f() { decoder.Skip(4) }"), nil},

	{"sleep", "sleep", goFile("internal/node/a_test.go", "import \"time\"\nfunc f() { time.Sleep(1) }"), []string{"internal/node/a_test.go"}},
	{"sleep", "in a bubble", goFile("internal/node/a_test.go", `import ("testing"; "testing/synctest"; "time")
		func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`), nil},
	{"sleep", "in a bubble of a helper, and polling", goFile("internal/node/a_test.go", `import "time"
		func TestX(t *testing.T) { inBubble(t, func() { time.Sleep(1) }) }
		func inBubble(t *testing.T, f func()) { time.Sleep(1) }
		func eventually(ok func() bool) { time.Sleep(1) }`), nil},
	{"sleep", "shipped code", goFile("internal/node/a.go", "import \"time\"\nfunc f() { time.Sleep(1) }"), nil},

	{"for-testing", "method", goFile("internal/node/a.go", "func (n *Node) resetForTesting() {}"), []string{"internal/node/a.go Node.resetForTesting"}},
	{"for-testing", "in a test", goFile("internal/node/a_test.go", "func setForTest() {}"), nil},

	{"fault-tag", "elsewhere", map[string]string{"internal/storage/a.go": "//go:build linux && !fault\n\npackage storage"}, []string{"internal/storage/a.go"}},
	{"fault-tag", "sys", map[string]string{"internal/sys/a.go": "//go:build fault\n\npackage sys"}, nil},
	{"fault-tag", "other tags", map[string]string{"internal/storage/a.go": "//go:build linux\n\npackage storage"}, nil},

	{"leak", "parameter", goFile("client/a.go", "import \"strandline.dev/internal/kafka\"\nfunc F(o kafka.Offset) {}"), []string{"client/a.go F"}},
	{"leak", "method result", goFile("embedded/a.go", "import \"strandline.dev/internal/node\"\nfunc (b *Broker) Node() []*node.Node { return nil }"), []string{"embedded/a.go Broker.Node"}},
	{"leak", "field", goFile("client/a.go", "import \"strandline.dev/internal/kafka\"\ntype T struct { O kafka.Offset }"), []string{"client/a.go T"}},
	{"leak", "embedded field", goFile("client/a.go", "import \"strandline.dev/internal/kafka\"\ntype T struct { kafka.TopicPartition }"), []string{"client/a.go T"}},
	{"leak", "variable", goFile("client/a.go", "import \"strandline.dev/internal/kafka\"\nvar V kafka.Offset"), []string{"client/a.go V"}},
	{"leak", "hidden", goFile("client/a.go", `import "strandline.dev/internal/kafka"
		type T struct { o kafka.Offset }
		func (t T) hidden(o kafka.Offset) {}
		func F() { var o kafka.Offset; _ = o }`), nil},

	{"link", "absent file", map[string]string{"README.md": "see [x](docs/a.md)"}, []string{"README.md docs/a.md"}},
	{"link", "absent heading", map[string]string{"docs/a.md": "# One\n[x](#two)"}, []string{"docs/a.md #two"}},
	{"link", "good", map[string]string{
		"README.md":   "[a](docs/a.md#how-it-works) [b](https://example.com/x) `[c](nothing)` [d](docs/a.go) [e](docs)\n```\n[f](nothing)\n```",
		"docs/a.md":   "## How it *works*\n[up](../README.md)",
		"docs/a.go":   "package docs",
		"docs/b/c.md": "[a](../a.md)",
	}, nil},

	{"decision", "number twice", map[string]string{"docs/decisions/0001-a.md": "# 0001 A", "docs/decisions/0001-b.md": "# 0001 B"}, []string{"docs/decisions/0001-b.md"}},
	{"decision", "other number", map[string]string{"docs/decisions/0001-a.md": "# 0002 A"}, []string{"docs/decisions/0001-a.md"}},
	{"decision", "good", map[string]string{"docs/decisions/0001-a.md": "# 0001 A", "docs/decisions/0002-b.md": "# 0002 B", "docs/a.md": "# A"}, nil},

	{"guarantee", "row missing", map[string]string{guaranteesFile: rows(7)}, []string{guaranteesFile + " R7"}},
	{"guarantee", "row twice", map[string]string{guaranteesFile: rows(0, "| R7 | B | words | not yet | |")}, []string{guaranteesFile + " R7"}},
	{"guarantee", "no such requirement", map[string]string{guaranteesFile: rows(0, "| R188 | B | words | not yet | |")}, []string{guaranteesFile + " R188"}},
	{"guarantee", "no state", map[string]string{guaranteesFile: rows(7, "| R7 | B | words | | |")}, []string{guaranteesFile + " R7"}},
	{"guarantee", "no proof", map[string]string{guaranteesFile: rows(7, "| R7 | B | words | holds | trust us |")}, []string{guaranteesFile + " R7"}},
	{"guarantee", "absent test", map[string]string{guaranteesFile: rows(7, "| R7 | B | words | holds | `TestX` |")}, []string{guaranteesFile + " R7"}},
	{"guarantee", "absent script", map[string]string{guaranteesFile: rows(7, "| R7 | B | words | holds | x.txtar |")}, []string{guaranteesFile + " R7"}},
	{"guarantee", "a promise with a broken proof", map[string]string{guaranteesFile: rows(7, "| R7 | B | words | not yet | TestX |")}, []string{guaranteesFile + " R7"}},
	{"guarantee", "good", map[string]string{
		guaranteesFile:                  rows(7, "| R7 | B | words | holds | `TestI3_X`, script/x.txtar, [words](operating/a.md) |"),
		"internal/node/x_test.go":       "package node\nfunc TestI3_X(t *testing.T) {}",
		"cmd/a/testdata/script/x.txtar": "", "docs/operating/a.md": "",
	}, nil},
	{"guarantee", "no page yet", map[string]string{"README.md": ""}, nil},

	{"road", "absent function", map[string]string{"ARCHITECTURE.md": "`server/a.go Do`", "internal/server/a.go": "package server"}, []string{"ARCHITECTURE.md server/a.go Do"}},
	{"road", "absent file", map[string]string{"ARCHITECTURE.md": "`server/a.go Do`"}, []string{"ARCHITECTURE.md server/a.go Do"}},
	{"road", "good", map[string]string{
		"ARCHITECTURE.md":      "steps are `package/file.go Func`: `server/a.go Do`, `server/a.go Server.Do`, `server/a.go Server`",
		"internal/server/a.go": "package server\ntype Server struct{}\nfunc (s *Server) Do() {}",
	}, nil},
}

func TestChecksFindWhatIsBadAndPassWhatIsGood(t *testing.T) {
	for _, c := range cases {
		t.Run(c.check+"/"+c.name, func(t *testing.T) {
			source := newTree(c.sources)
			if len(source.bad) > 0 {
				t.Fatalf("the case does not parse: %v", source.bad)
			}
			var found []string
			for _, f := range source.findings() {
				if f.check == c.check {
					found = append(found, f.where)
				}
			}
			if fmt.Sprint(found) != fmt.Sprint(c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

func TestEveryCheckHasGoodAndBadCases(t *testing.T) {
	good, bad := map[string]bool{}, map[string]bool{}
	for _, c := range cases {
		if len(c.want) > 0 {
			bad[c.check] = true
		} else {
			good[c.check] = true
		}
	}
	for _, c := range checks {
		if !good[c.name] || !bad[c.name] {
			t.Errorf("%s: has a good case: %v, has a bad case: %v", c.name, good[c.name], bad[c.name])
		}
	}
}

func TestSourceThatDoesNotParseIsFound(t *testing.T) {
	found := newTree(map[string]string{"internal/node/a.go": "package"}).findings()
	if len(found) != 1 || found[0].check != "parse" {
		t.Fatalf("found %v", found)
	}
}

func TestLoadReadsTheTree(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"internal/node/a.go": "package node", "internal/node/testdata/bad.go": "not Go", "README.md": "[a](LICENSE)", "LICENSE": "",
		".git/x.go": "not Go",
	} {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.files) != 1 || len(got.docs) != 1 || len(got.bad) != 0 || !got.paths["LICENSE"] || !got.paths["internal/node/testdata/bad.go"] {
		t.Fatalf("files %d, docs %v, bad %v, paths %v", len(got.files), got.docs, got.bad, got.paths)
	}
}

func TestTableIsConsistent(t *testing.T) {
	for dir, r := range packages {
		for p := filepath.Dir(dir); p != "."; p = filepath.Dir(p) {
			if parent, ok := packages[p]; ok && parent.rank != r.rank && r.rank != unranked {
				t.Errorf("%s has rank %d and %s above it has %d", dir, r.rank, p, parent.rank)
			}
		}
		if r.pure && r.rank > 2 {
			t.Errorf("%s is pure at rank %d", dir, r.rank)
		}
	}
}
