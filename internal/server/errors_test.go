package server

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline.dev/internal/config"
	"strandline.dev/internal/controller"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/storage"
)

// neverReachesClients are sentinels of start-up, offline tools and internal misuse. Should one get here all the same, it is an
// UNKNOWN_SERVER_ERROR with a loud log.
var neverReachesClients = map[string]bool{
	"storage.ErrInvalidAppend": true, // a broken invariant of the caller
	"storage.ErrWrongIdentity": true, // start
	"storage.ErrIdentityLost":  true, // start
	"storage.ErrForeign":       true, // start
	"storage.ErrGone":          true, // ends the node; requests in progress get replica.ErrStorage
	"storage.ErrExists":        true, // start, quarantine
	"storage.ErrNotFound":      true, // offline tools, quarantine
	"controller.ErrRefused":    true, // a defect
	"audit.ErrBroken":          true, // verification, by who reads the trail
	"audit.ErrTooMany":         true, // reading the trail
}

// Every exported sentinel of the packages that answer requests is in the error table, or named above.
func TestErrors_EverySentinelIsMapped(t *testing.T) {
	mapped := map[string]bool{}
	src, err := os.ReadFile("errors.go")
	must(t, err)
	for _, pkg := range []string{"storage", "replica", "controller", "coordinator", "audit", "record", "config"} {
		names := sentinels(t, filepath.Join("..", pkg))
		if len(names) == 0 {
			t.Errorf("no sentinel found in %s: the test looks in the wrong place", pkg)
		}
		for _, name := range names {
			full := pkg + "." + name
			mapped[full] = strings.Contains(string(src), "{"+full+", ")
			if mapped[full] == neverReachesClients[full] {
				t.Errorf("%s: in the table %v, listed as never reaching clients %v", full, mapped[full], neverReachesClients[full])
			}
		}
	}
	for name := range neverReachesClients {
		if _, ok := mapped[name]; !ok {
			t.Errorf("%s does not exist any more", name)
		}
	}
}

// sentinels lists the exported Err variables of a package.
func sentinels(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for _, f := range parsePackage(t, dir) {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					if strings.HasPrefix(n.Name, "Err") {
						out = append(out, n.Name)
					}
				}
			}
		}
	}
	return out
}

// parsePackage parses the files of a directory but for its tests, by file name.
func parsePackage(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	must(t, err)
	files := make(map[string]*ast.File)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		must(t, err)
		files[filepath.Base(path)] = f
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no package", dir)
	}
	return files
}

func TestErrors_Codes(t *testing.T) {
	for _, one := range []struct {
		err  error
		want kafka.ErrorCode
		ok   bool
	}{
		{nil, kafka.None, true},
		{replica.ErrNotLeader, kafka.NotLeaderOrFollower, true},
		{fmt.Errorf("partition x: %w", replica.ErrStorage), kafka.KafkaStorageError, true},
		{fmt.Errorf("read: %w", &storage.CorruptError{}), kafka.KafkaStorageError, true},
		{&record.InvalidError{Kind: record.RecordTooLarge}, kafka.MessageTooLarge, true},
		{fmt.Errorf("%w: %w", controller.ErrUnknownOutcome, context.Canceled), kafka.RequestTimedOut, true},
		{&config.ValueError{}, kafka.InvalidConfig, true},
		{errors.New("something new"), kafka.UnknownServerError, false},
	} {
		if got, ok := CodeOf(one.err); got != one.want || ok != one.ok {
			t.Errorf("%v: %v %v, want %v %v", one.err, got, ok, one.want, one.ok)
		}
	}
	for k := record.Corrupt; k <= record.UnsupportedCompression; k++ {
		if _, ok := kinds[k]; !ok {
			t.Errorf("kind %v has no code", k)
		}
	}
	if !strings.HasPrefix((record.UnsupportedCompression + 1).String(), "kind ") {
		t.Error("record has a kind that this test does not know")
	}
}
