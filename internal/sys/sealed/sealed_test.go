package sealed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

const (
	ringPath = "/keys/ring"
	logPath  = "/data/topics/ab-0/00000000000000000000.log"
)

// newTestFS is a crashable disk with a keyring of one key.
func newTestFS(t testing.TB) (*systest.FS, *Keyring) {
	t.Helper()
	fsys := systest.NewFS(1)
	for _, dir := range []string{"/keys", "/data/topics/ab-0"} {
		if err := fsys.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := AddKey(fsys, ringPath, "one", true); err != nil {
		t.Fatal(err)
	}
	return fsys, mustRing(t, fsys)
}

func mustRing(t testing.TB, fsys sys.FS) *Keyring {
	t.Helper()
	k, err := OpenKeyring(fsys, ringPath)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustOpen(t testing.TB, fsys sys.FS, flag int) sys.File {
	t.Helper()
	f, err := fsys.OpenFile(logPath, flag, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustContent(t testing.TB, fsys sys.FS, name string) []byte {
	t.Helper()
	b, err := sys.ReadFile(fsys, name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestModel: a sealed file behaves as a plain one under appends, cuts anywhere, reads anywhere and opening again; and nothing of its content is
// on the disk.
func TestModel(t *testing.T) {
	for seed := range uint64(30) {
		disk, ring := newTestFS(t)
		fsys := New(disk, ring)
		rng := rand.New(rand.NewPCG(seed, 1))
		f := mustOpen(t, fsys, os.O_RDWR|os.O_CREATE)
		var want []byte
		canary := []byte("canary-0123456789-0123456789-abc")
		for range 150 {
			switch p := rng.IntN(10); {
			case p < 5:
				b := bytes.Repeat(canary, 1+rng.IntN(40))
				if rng.IntN(8) == 0 {
					b = bytes.Repeat(canary, 6000)
				}
				b = append(b, byte(rng.Uint32()))
				if n, err := f.WriteAt(b, int64(len(want))); err != nil || n != len(b) {
					t.Fatal(n, err)
				}
				want = append(want, b...)
			case p < 7:
				size := rng.IntN(len(want) + 1)
				if rng.IntN(3) > 0 { // near the end
					size = max(0, len(want)-rng.IntN(2000))
				}
				if err := f.Truncate(int64(size)); err != nil {
					t.Fatal(err)
				}
				want = want[:size]
			case p < 8:
				f.Close()
				f = mustOpen(t, fsys, os.O_RDWR)
			}
			if st, err := f.Stat(); err != nil || st.Size != int64(len(want)) {
				t.Fatalf("seed %d: size %d, %v, want %d", seed, st.Size, err, len(want))
			}
			off := rng.IntN(len(want) + 1)
			got := make([]byte, rng.IntN(70_000))
			n, err := f.ReadAt(got, int64(off))
			if most := len(want) - off; n != min(len(got), most) || (n < len(got)) != errors.Is(err, io.EOF) || !bytes.Equal(got[:n], want[off:off+n]) {
				t.Fatalf("seed %d: read %d of %d at %d of %d: %v, or other bytes", seed, n, len(got), off, len(want), err)
			}
		}
		if list, err := fsys.ReadDir("/data/topics/ab-0"); err != nil || len(list) != 1 || list[0].Size != int64(len(want)) {
			t.Fatalf("%+v, %v, want %d bytes", list, err, len(want))
		}
		if raw := mustContent(t, disk, logPath); bytes.Contains(raw, canary[:8]) {
			t.Fatal("R151: the content is on the disk")
		}
	}
}

// TestR151_Refusals: no keys, another keyring, the right name with another key, a torn keyring file: each is named, and the file stays as it is.
func TestR151_Refusals(t *testing.T) {
	disk, ring := newTestFS(t)
	f := mustOpen(t, New(disk, ring), os.O_RDWR|os.O_CREATE)
	if _, err := f.WriteAt([]byte("secret"), 0); err != nil {
		t.Fatal(err)
	}
	before := mustContent(t, disk, logPath)
	text := mustContent(t, disk, ringPath)
	other := func(id string) Keys {
		d, _ := newTestFS(t)
		if id != "one" {
			if err := d.Remove(ringPath); err != nil {
				t.Fatal(err)
			}
			if err := AddKey(d, ringPath, id, true); err != nil {
				t.Fatal(err)
			}
		}
		return mustRing(t, d)
	}
	for _, c := range []struct {
		name string
		keys Keys
		want error
	}{{"no keys", nil, ErrNoKeys}, {"unknown key", other("two"), ErrUnknownKey}, {"wrong key", other("one"), ErrWrongKey}} {
		_, err := New(disk, c.keys).OpenFile(logPath, os.O_RDWR, 0)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), logPath) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if !bytes.Equal(mustContent(t, disk, logPath), before) {
		t.Error("a refused file was changed")
	}
	for cut := range text {
		if err := sys.WriteFileAtomic(disk, ringPath, text[:cut]); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeyring(disk, ringPath); !errors.Is(err, ErrTornKeyring) {
			t.Fatalf("a keyring of %d of %d bytes: %v", cut, len(text), err)
		}
	}
	for i := range text {
		bad := bytes.Clone(text)
		bad[i] ^= 1
		if _, err := parseKeyring(string(bad)); err == nil {
			t.Fatalf("byte %d of the keyring may be any", i)
		}
	}
	if _, err := OpenKeyring(disk, "/keys/none"); !errors.Is(err, ErrNoKeyring) {
		t.Error(err)
	}
}

// TestR151_Rotation: a key that is added is used by the next file, old files are read with theirs, and nothing is written again.
func TestR151_Rotation(t *testing.T) {
	disk, ring := newTestFS(t)
	fsys := New(disk, ring)
	name := func(i int) string { return fmt.Sprintf("/data/topics/ab-0/%020d.log", i) }
	var raw [][]byte
	for i := range 3 {
		if i > 0 {
			if err := AddKey(disk, ringPath, fmt.Sprintf("key-%d", i), false); err != nil {
				t.Fatal(err)
			}
		}
		f, err := fsys.OpenFile(name(i), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(fmt.Appendf(nil, "text %d", i), 0); err != nil {
			t.Fatal(err)
		}
		raw = append(raw, mustContent(t, disk, name(i)))
	}
	for i := range 3 {
		if id, _, ok := readHeader(raw[i]); !ok || id != []string{"one", "key-1", "key-2"}[i] {
			t.Errorf("file %d is sealed with %q", i, id)
		}
		if got := string(mustContent(t, New(disk, mustRing(t, disk)), name(i))); got != fmt.Sprintf("text %d", i) {
			t.Errorf("%q", got)
		}
		if !bytes.Equal(mustContent(t, disk, name(i)), raw[i]) {
			t.Errorf("file %d was written again", i)
		}
	}
	if err := AddKey(disk, ringPath, "key-1", false); err == nil {
		t.Error("a second key of the same name")
	}
	if err := AddKey(disk, ringPath, "x", true); err == nil {
		t.Error("a keyring was replaced by a new one")
	}
}

// TestI11_ChangedBytesReadAsZeros: whatever byte is changed, what is read is what was written or zeros; never anything else. So is a file that was
// moved to another log.
func TestI11_ChangedBytesReadAsZeros(t *testing.T) {
	disk, ring := newTestFS(t)
	fsys := New(disk, ring)
	f := mustOpen(t, fsys, os.O_RDWR|os.O_CREATE)
	var want []byte
	for i := range 4 {
		b := bytes.Repeat([]byte{byte('a' + i)}, 50)
		if _, err := f.WriteAt(b, int64(len(want))); err != nil {
			t.Fatal(err)
		}
		want = append(want, b...)
	}
	raw := mustContent(t, disk, logPath)
	for i := range raw {
		bad := bytes.Clone(raw)
		bad[i] ^= 0x41
		if err := sys.WriteFileAtomic(disk, logPath, bad); err != nil {
			t.Fatal(err)
		}
		got, err := sys.ReadFile(fsys, logPath, 1<<20)
		if i < 4 && err == nil {
			continue // no sealed file any more; what is above finds that out
		}
		if err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		for j, b := range got {
			if b != 0 && (j >= len(want) || b != want[j]) {
				t.Fatalf("byte %d changed: position %d reads as %q", i, j, b)
			}
		}
	}
	if err := disk.MkdirAll("/data/topics/cd-0", 0o700); err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(logPath, "ab-0", "cd-0", 1)
	if err := sys.WriteFileAtomic(disk, moved, raw); err != nil {
		t.Fatal(err)
	}
	if _, err := fsys.OpenFile(moved, os.O_RDWR, 0); !errors.Is(err, ErrWrongKey) {
		t.Errorf("a file of another log: %v", err)
	}
}

// TestPlainFilesStayPlain until they are empty: those of before encryption was turned on.
func TestPlainFilesStayPlain(t *testing.T) {
	disk, ring := newTestFS(t)
	old := bytes.Repeat([]byte("old "), 100)
	if err := sys.WriteFileAtomic(disk, logPath, old); err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, New(disk, ring), os.O_RDWR)
	if _, err := f.WriteAt([]byte("more"), int64(len(old))); err != nil {
		t.Fatal(err)
	}
	if got := mustContent(t, disk, logPath); string(got) != string(old)+"more" {
		t.Fatalf("%q", got)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("secret"), 0); err != nil {
		t.Fatal(err)
	}
	if got := mustContent(t, disk, logPath); bytes.Contains(got, []byte("secret")) {
		t.Fatalf("%q", got)
	}
}

// FuzzFile: no content of a file on disk leads to anything but an error, or bytes.
func FuzzFile(f *testing.F) {
	disk, ring := newTestFS(f)
	fsys := New(disk, ring)
	file := mustOpen(f, fsys, os.O_RDWR|os.O_CREATE)
	for _, s := range []string{"one", "two", "three"} {
		st, _ := file.Stat()
		if _, err := file.WriteAt([]byte(s), st.Size); err != nil {
			f.Fatal(err)
		}
	}
	if err := file.Truncate(5); err != nil {
		f.Fatal(err)
	}
	f.Add(mustContent(f, disk, logPath))
	f.Add([]byte(headerMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := systest.NewFS(1)
		if err := errors.Join(d.MkdirAll("/data/topics/ab-0", 0o700), sys.WriteFileAtomic(d, logPath, b)); err != nil {
			t.Fatal(err)
		}
		h, err := New(d, ring).OpenFile(logPath, os.O_RDWR, 0)
		if err != nil {
			return
		}
		st, err := h.Stat()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, st.Size)
		if n, err := h.ReadAt(got, 0); n != len(got) {
			t.Fatalf("%d of %d bytes: %v", n, len(got), err)
		}
		if err := h.Truncate(st.Size / 2); err == nil && st.Size > 1 {
			if now, _ := h.Stat(); now.Size != st.Size/2 {
				t.Fatalf("%d bytes after a cut to %d", now.Size, st.Size/2)
			}
		}
	})
}

// Security test 9: no nonce is used twice with one key, though the same bytes are written at the same place again and again, after cuts and by process
// after process; and another file of the same text has another key.
func TestSecurity9_NoncesAreNotRepeated(t *testing.T) {
	disk, _ := newTestFS(t)
	seen := map[string]bool{}
	frames := 0
	for range 20 {
		f := mustOpen(t, New(disk, mustRing(t, disk)), os.O_RDWR|os.O_CREATE)
		for range 5 {
			if _, err := f.WriteAt([]byte("the same bytes"), 0); err != nil {
				t.Fatal(err)
			}
			raw := mustContent(t, disk, logPath)
			for at := 0; at < len(raw); {
				one, ok := parseFrame(raw[at:])
				if !ok {
					at++
					continue
				}
				if whole := string(raw[at : at+int(one.size())]); !seen[whole] { // one that was not there at the last look
					seen[whole] = true
					frames++
					if nonce := "nonce " + string(raw[at+nonceAt:at+crcAt]); seen[nonce] {
						t.Fatal("a nonce is used twice")
					} else {
						seen[nonce] = true
					}
				}
				at += int(one.size())
			}
			if err := f.Truncate(0); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if frames < 100 {
		t.Errorf("%d frames were seen", frames)
	}
}
