package storage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/sealed"
	"strandline.dev/internal/sys/systest"
)

// encrypted has the directories of a test encrypted.
func encrypted(t testing.TB) {
	t.Helper()
	const ring = "/keys/ring"
	fsys := systest.NewFS(1)
	if err := fsys.MkdirAll(filepath.Dir(ring), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := sealed.AddKey(fsys, ring, "one", true); err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.OpenKeyring(fsys, ring)
	if err != nil {
		t.Fatal(err)
	}
	testKeys = keys
	t.Cleanup(func() { testKeys = nil })
}

// TestR151_ModelEncrypted: TestModel with encryption at rest.
func TestR151_ModelEncrypted(t *testing.T) {
	encrypted(t)
	TestModel(t)
}

// TestR151_CrashAtEveryFileOperationEncrypted: encryption changes nothing of what a crash may leave (P21).
func TestR151_CrashAtEveryFileOperationEncrypted(t *testing.T) {
	encrypted(t)
	for seed := *modelSeed; seed < *modelSeed+uint64(*modelRuns+1)/2; seed++ {
		for _, c := range modelConfigs[:3] {
			crashModel(t, seed, c.options, c.crashes)
		}
	}
}

// TestR151_NothingOfARecordIsOnTheDisk: no run of a canary in keys, values and headers, in the active segment, sealed ones and compacted ones.
func TestR151_NothingOfARecordIsOnTheDisk(t *testing.T) {
	encrypted(t)
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, compactible)
	const canary = "0123456789abcdef-canary-fedcba98"
	for i := range 60 {
		bu := record.NewBuilder(record.None)
		bu.Add(1, fmt.Appendf(nil, "%s%d", canary, i%5), []byte(canary), []record.Header{{Key: canary, Value: []byte(canary)}})
		mustAppend(t, l, 0, bu.Build())
	}
	d.syncer.runAll()
	if done := mustCompact(t, l, CompactionPolicy{Merge: true}, testDay); !done.Ran {
		t.Fatalf("%+v", done)
	}
	mustRecords(t, l)
	closeClean(t, d)
	segments := 0
	for _, name := range mustList(t, fsys) {
		b, err := sys.ReadFile(fsys, logFile(name), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, logSuffix) {
			segments++
		}
		for i := range len(canary) - 7 {
			if bytes.Contains(b, []byte(canary[i:i+8])) {
				t.Fatalf("R151: %s has %q", name, canary[i:i+8])
			}
		}
	}
	if segments < 2 {
		t.Fatalf("%d segments", segments)
	}
}

// TestR151_WithoutTheKeyTheLogIsRefused, by name; nothing of it changes, and with the key all is there.
func TestR151_WithoutTheKeyTheLogIsRefused(t *testing.T) {
	encrypted(t)
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, compactible)
	fill(t, l, 20)
	d.syncer.runAll()
	want, err := readAll(l, l.End(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	closeClean(t, d)
	machine := systest.Machine(fsys, nil, systest.NewWall(testDay))
	machine.FS = sealed.New(fsys, nil)
	if d, err = openDir(DirOptions{Machine: machine, Path: testRoot, Metrics: testMetrics}); err != nil {
		t.Fatal(err)
	}
	_, err = d.OpenLog(testTP, compactible)
	wantErr(t, err, sealed.ErrNoKeys)
	if err := d.Close(CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	l = openTestLog(t, newTestDir(t, fsys), compactible)
	if got, err := readAll(l, 20, 1<<20); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v; want %d", len(got), err, len(want))
	}
}

// TestR151_ATamperedFrameIsDamage: changed bytes are never served, and take the log out of service until it is rebuilt (I11).
func TestR151_ATamperedFrameIsDamage(t *testing.T) {
	encrypted(t)
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, compactible)
	fill(t, l, 20)
	d.syncer.runAll()
	f, err := fsys.OpenFile(l.mu.segments[1].path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err = f.ReadAt(b, 400); err == nil {
		_, err = f.WriteAt([]byte{b[0] ^ 1}, 400)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(l, l.End(), 1<<20)
	if !isCorrupt(err) || !isCorrupt(l.Damaged()) {
		t.Fatalf("%d bytes, error %v, damaged %v", len(got), err, l.Damaged())
	}
	if next := recordsOf(splitAll(got)); len(next) == 0 || next[len(next)-1].offset >= l.mu.segments[2].base {
		t.Fatalf("%d records are served", len(next))
	}
}
