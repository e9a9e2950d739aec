package storage

import (
	"path/filepath"

	"strandline.dev/internal/sys"
)

// storedDir is implemented by a file system that shows other sizes than its files take on the disk.
type storedDir interface {
	StoredDir(name string) ([]sys.FileInfo, error)
}

// heldBytes is what the files of the directory take, trash and quarantine included, the reserve not: that one gives way when it must.
func (d *Dir) heldBytes() (int64, error) {
	list := d.fs.ReadDir
	if s, ok := d.fs.(storedDir); ok {
		list = s.StoredDir
	}
	var sum func(path string, depth int) (int64, error)
	sum = func(path string, depth int) (int64, error) {
		entries, err := list(path)
		if isMissing(err) && depth > 0 {
			return 0, nil // dropped meanwhile
		}
		if err != nil {
			return 0, err
		}
		total := int64(0)
		for _, e := range entries {
			switch {
			case e.IsDir && depth < heldDepthMax:
				n, err := sum(filepath.Join(path, e.Name), depth+1)
				if err != nil {
					return 0, err
				}
				total += n
			case !e.IsDir && (depth > 0 || e.Name != reserveFile):
				total += e.Size
			}
		}
		return total, nil
	}
	return sum(d.path, 0)
}
