package systest

import "strandline.dev/internal/sys"

// nominalBytes is the size of a disk that SetFree has not limited.
const nominalBytes = 1 << 40

// Space reports what files hold, pending bytes included, and what SetFree allows; without a limit the disk has 1 TiB. It fails once the
// machine has stopped.
func (fsys *FS) Space(string) (sys.Space, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.dead {
		return sys.Space{}, ErrCrashed
	}
	var used int64
	fsys.eachFile(func(_ string, n *inode) { used += int64(len(n.data)) })
	if fsys.faults.free < 0 {
		return sys.Space{Total: nominalBytes, Usable: max(0, nominalBytes-used)}, nil
	}
	return sys.Space{Total: used + fsys.faults.free, Usable: fsys.faults.free}, nil
}
