package sealed

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// framedNew is written as framedOps frames behind framedOld.
var (
	framedOld = []byte("what was there")
	framedNew = bytes.Repeat([]byte("0123456789abcdef"), (2*frameMax+100)/16)
)

const framedOps = 3

// newFramedFile is a file with framedOld in it.
func newFramedFile(t *testing.T) (*systest.FS, *Keyring, sys.File) {
	t.Helper()
	disk, ring := newTestFS(t)
	f := mustOpen(t, New(disk, ring), os.O_RDWR|os.O_CREATE)
	if _, err := f.WriteAt(framedOld, 0); err != nil {
		t.Fatal(err)
	}
	return disk, ring, f
}

// TestI11_AWriteThatFailsInItsMiddleChangesNothing: wherever among its frames; what is written next is there alone.
func TestI11_AWriteThatFailsInItsMiddleChangesNothing(t *testing.T) {
	broken := errors.New("the disk is broken")
	want := append(bytes.Clone(framedOld), "next"...)
	for at := range int64(framedOps) {
		disk, ring, f := newFramedFile(t)
		disk.FailAt(disk.Ops()+1+at, broken)
		if _, err := f.WriteAt(framedNew, int64(len(framedOld))); !errors.Is(err, broken) {
			t.Fatalf("frame %d: %v", at, err)
		}
		if st, err := f.Stat(); err != nil || st.Size != int64(len(framedOld)) {
			t.Fatalf("frame %d: %d bytes, %v", at, st.Size, err)
		}
		if _, err := f.WriteAt([]byte("next"), int64(len(framedOld))); err != nil {
			t.Fatalf("frame %d: %v", at, err)
		}
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Errorf("frame %d: %q, %v", at, got, err)
		}
		if got := mustContent(t, New(disk.Crash(systest.KillProcess), ring), logPath); !bytes.Equal(got, want) {
			t.Errorf("frame %d: after a kill %d bytes, want %d, or others", at, len(got), len(want))
		}
	}
}

// TestP21_AKillInTheMiddleOfAWriteLeavesItsBeginning: what was there, and as much of the write as lies in whole frames.
func TestP21_AKillInTheMiddleOfAWriteLeavesItsBeginning(t *testing.T) {
	for at := range int64(framedOps + 1) {
		disk, ring, f := newFramedFile(t)
		disk.CrashAt(disk.Ops() + 1 + at)
		if _, err := f.WriteAt(framedNew, int64(len(framedOld))); (err != nil) != (at < framedOps) {
			t.Fatalf("%d frames: %v", at, err)
		}
		want := append(bytes.Clone(framedOld), framedNew[:min(at*frameMax, int64(len(framedNew)))]...)
		if got := mustContent(t, New(disk.Crash(systest.KillProcess), ring), logPath); !bytes.Equal(got, want) {
			t.Errorf("%d frames: %d bytes, want %d, or others", at, len(got), len(want))
		}
	}
}
