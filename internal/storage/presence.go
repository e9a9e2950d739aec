package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Present returns nil while the data directory is the one that was opened, else ErrGone: it was removed, moved, unmounted or replaced
// under the running node. Files that are still open would go on taking records and syncs, for nobody to find (I1).
func (d *Dir) Present() error {
	want := d.Identity().DirectoryID
	missing := 0
	for _, name := range []string{identityFile, identityCopy} {
		id, err := d.readIdentity(name)
		switch {
		case err == nil && id.DirectoryID == want:
			return nil
		case err == nil:
			return fmt.Errorf("%w: %s now belongs to directory %s, %s was opened", ErrGone, d.path, id.DirectoryID.Hex(), want.Hex())
		case errors.Is(err, fs.ErrNotExist):
			missing++
		}
	}
	if missing == 2 {
		return fmt.Errorf("%w: %s holds no %s any more", ErrGone, d.path, identityFile)
	}
	return nil // unreadable for the moment (too many open files), or damaged: that is not absence
}

// gone is Present at the price of one open, for every sync round: what is acknowledged must be where the next start will look.
func (d *Dir) gone() error {
	f, err := d.fs.OpenFile(filepath.Join(d.path, identityFile), os.O_RDONLY, 0)
	if err == nil {
		return f.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return d.Present()
	}
	return nil
}
