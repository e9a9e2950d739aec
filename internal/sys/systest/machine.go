package systest

import "strandline.dev/internal/sys"

// Machine returns a machine made of test parts, with the boot id of fs: a power cut changes it, kill -9 does not. A nil net
// is one on which nobody else is; a nil wall ticks from the current time.
func Machine(fsys *FS, n sys.Net, w sys.Wall) sys.Machine {
	if n == nil {
		n = NewNet().Host("localhost")
	}
	if w == nil {
		w = NewTickingWall(timeNow())
	}
	return sys.Machine{FS: fsys, Net: n, Wall: w, BootID: fsys.BootID, Space: fsys.Space}
}
