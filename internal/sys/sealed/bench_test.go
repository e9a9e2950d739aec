package sealed

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"strandline.dev/internal/sys"
)

// BenchmarkWrite appends to a file of the real file system that is never synced, with and without encryption.
func BenchmarkWrite(b *testing.B) {
	_, ring := newTestFS(b)
	for _, keys := range []Keys{nil, ring} {
		for _, size := range []int{1 << 10, 16 << 10, 512 << 10} {
			b.Run("keys="+strconv.FormatBool(keys != nil)+"/KiB="+strconv.Itoa(size>>10), func(b *testing.B) {
				f, err := New(sys.Real().FS, keys).OpenFile(filepath.Join(b.TempDir(), "0.log"), os.O_RDWR|os.O_CREATE, 0o600)
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close() //nolint:errcheck // nothing is read again
				data := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				at := int64(0)
				for b.Loop() {
					if at+int64(size) > 64<<20 {
						if err := f.Truncate(0); err != nil {
							b.Fatal(err)
						}
						at = 0
					}
					if _, err := f.WriteAt(data, at); err != nil {
						b.Fatal(err)
					}
					at += int64(size)
				}
			})
		}
	}
}
