package sys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// temporarySuffix marks a file that WriteFileAtomic had not finished when the process ended; a reader never looks at it and
// the next write of the same name replaces it.
const temporarySuffix = ".tmp"

// privateFile is the mode of files with state in them: only the user that runs the broker reads its data.
const privateFile os.FileMode = 0o600

// WriteFileAtomic replaces a small file so that a crash at any moment leaves the old content or the new one, whole: write
// a temporary file, sync it, rename it over name, sync the directory. When it returns nil the new content is durable; when
// it returns an error either content may be found, and the temporary file is gone if it could be removed: on a full disk it
// would hold the room that is missing.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	// The sync must come before the rename: otherwise a power cut can leave the new name with no bytes behind it.
	if err := writeTemporary(fsys, name, data, File.Sync); err != nil {
		return err
	}
	temporary := name + temporarySuffix
	if err := fsys.Rename(temporary, name); err != nil {
		// An error here adds nothing: the next write of this name replaces the file.
		_ = fsys.Remove(temporary)
		return named(err, name)
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeTemporary creates or empties the temporary file of name, writes data and calls sync. After an error the file is gone, if that is
// possible.
func writeTemporary(fsys FS, name string, data []byte, sync func(File) error) error {
	temporary := name + temporarySuffix
	f, err := fsys.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, privateFile)
	if err == nil {
		_, err = f.WriteAt(data, 0)
		if err == nil {
			err = sync(f)
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		_ = fsys.Remove(temporary)
		return named(err, name)
	}
	return nil
}

// ReadFile returns the whole content of a file of at most limit bytes. A larger file is ErrTooLarge, and nothing of it is
// read; a missing one is fs.ErrNotExist.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size > limit {
		return nil, fmt.Errorf("read %s: %w (%d bytes, limit %d)", name, ErrTooLarge, st.Size, limit)
	}
	data := make([]byte, st.Size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !(errors.Is(err, io.EOF) && int64(n) == st.Size) {
		return nil, err
	}
	return data, nil
}

// Exists reports whether a file or directory has this name. An error means that nobody knows.
func Exists(fsys FS, name string) (bool, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// RemoveAll removes a file, or a directory with everything in it; a name that is not there is no error. The removal is
// durable only after SyncDir of the parent, and a crash on the way leaves part of the tree: a caller that needs all or
// nothing renames the directory away first.
func RemoveAll(fsys FS, name string) error {
	entries, err := fsys.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// A name that cannot be listed is a plain file, or its removal below says what is wrong.
	if err == nil {
		for _, e := range entries {
			if err := RemoveAll(fsys, filepath.Join(name, e.Name)); err != nil {
				return err
			}
		}
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
