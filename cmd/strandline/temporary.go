package main

import (
	"os"
	"path/filepath"
	"strings"

	"strandline.dev/internal/sys"
)

// temporaryPrefix begins the name of every temporary data directory of dev; os.MkdirTemp adds digits.
const temporaryPrefix = "strandline-dev-"

// sweepTemporary removes the temporary directories of dev processes that were killed: ours by name and owner, with an identity file, and
// with a lock that nobody holds. The identity file is written under the lock, so that a directory which has it was locked once: a dev that
// starts at this moment is never mistaken for a dead one. Whatever cannot be looked at or removed is left; this is tidiness, no duty.
func sweepTemporary(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		digits, ours := strings.CutPrefix(e.Name(), temporaryPrefix)
		if !ours || digits == "" || strings.Trim(digits, "0123456789") != "" || !e.IsDir() {
			continue
		}
		if info, err := e.Info(); err == nil && isOwn(info) {
			sweepOne(filepath.Join(parent, e.Name()))
		}
	}
}

func sweepOne(dir string) {
	if _, err := os.Lstat(filepath.Join(dir, "meta.json")); err != nil {
		return
	}
	lock, err := sys.Real().FS.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer lock.Close() // ends the lock, after the removal
	if lock.Lock() == nil {
		_ = os.RemoveAll(dir)
	}
}
