package replica

import "strandline.dev/internal/storage"

// fileRoom waits, for everything that one request or answer appends, until few enough segment files are open (C090). The wait is for sync
// rounds, so no lock is held. A disk that closes none in time is waited for once: of the thousands of partitions that a request may name,
// each would hold it up as long again.
type fileRoom struct {
	dir *storage.Dir
	err error
}

// await says why nothing may be appended now, or nil.
func (r *fileRoom) await() error {
	if r.err == nil {
		r.err = r.dir.AwaitFiles()
	}
	return r.err
}
