package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// batchSyncsMax is the number of files up to which a FileBatch syncs each by itself: beyond it one sync of the whole file system is
// cheaper, and it is what makes a stop with thousands of partitions short.
const batchSyncsMax = 8

// FileBatch replaces small files as WriteFileAtomic does, but makes them durable together: two syncs of the file system instead of two
// syncs a file. Use: Write each, then Commit once.
type FileBatch struct {
	fs    FS
	root  string
	names []string
}

// NewFileBatch returns an empty batch of files below root, all on one file system.
func NewFileBatch(fsys FS, root string) *FileBatch { return &FileBatch{fs: fsys, root: root} }

// Write writes the new content beside the file, unsynced. After an error the file is not part of the batch.
func (b *FileBatch) Write(name string, data []byte) error {
	if err := writeTemporary(b.fs, name, data, func(File) error { return nil }); err != nil {
		return err
	}
	b.names = append(b.names, name)
	return nil
}

// Commit syncs what was written, gives the files their names and syncs those. A file that could not be synced keeps its old content and is
// reported, as is one whose new name may not outlive a power cut. A crash at any moment leaves each file old or new, whole.
func (b *FileBatch) Commit(failed func(name string, err error)) {
	var renamed []string
	each := !b.syncAll()
	for _, name := range b.names {
		var err error
		if each {
			err = syncNamed(b.fs, name+temporarySuffix)
		}
		if err == nil {
			err = b.fs.Rename(name+temporarySuffix, name)
		}
		if err != nil {
			_ = b.fs.Remove(name + temporarySuffix) // the next write of this name replaces it anyway
			failed(name, named(err, name))
			continue
		}
		renamed = append(renamed, name)
	}
	if len(renamed) == 0 || b.syncAll() {
		return
	}
	synced := map[string]error{}
	for _, name := range renamed {
		dir := filepath.Dir(name)
		err, done := synced[dir]
		if !done {
			err = b.fs.SyncDir(dir)
			synced[dir] = err
		}
		if err != nil {
			failed(name, err)
		}
	}
}

// syncAll syncs everything at once where that pays, and says whether it worked. Its error names nobody: each file is then asked by itself.
func (b *FileBatch) syncAll() bool {
	return len(b.names) > batchSyncsMax && b.fs.SyncAll(b.root) == nil
}

func syncNamed(fsys FS, name string) error {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// named has an error about the temporary file of name speak of name, once.
func named(err error, name string) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: name, Err: at.Err}
	}
	return &fs.PathError{Op: "write", Path: name, Err: err}
}
