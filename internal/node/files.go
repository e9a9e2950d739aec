package node

import (
	"strandline.dev/internal/storage"
)

// A process may have only so many open files and sockets (ulimit -n). Each kind gets a share that the others cannot take: a flood of
// clients must not keep logs from rolling, nor thousands of written partitions the node from hearing its clients (C090).
const (
	// filesKept are for the rest, at most a filesKeptPart of all: listeners, the metadata log, small files on their way, directories being
	// synced, HTTP.
	filesKept     = 256
	filesKeptPart = 4
)

// fileShares divides what the process may have open: half of it for segments, the rest for clients. 0 leaves a share to its default.
func fileShares(limit int64) (segments int64, connections int) {
	if limit <= 0 {
		return 0, 0
	}
	left := limit - min(filesKept, limit/filesKeptPart)
	segments = min(left/2, storage.OpenFilesMaxDefault)
	return max(1, segments), int(max(1, min(left-segments, 1<<30)))
}

// connectionsMax is the setting max.connections, or what the process can have open if that is less.
func (n *Node) connectionsMax() int {
	want := n.brokerConfig().ConnectionsMax
	_, most := fileShares(n.o.Machine.OpenFiles)
	if most == 0 || want <= most {
		return want
	}
	n.log.Warn("max.connections is more than this process may have open files for", "max.connections", want, "connections", most,
		"open_files", n.o.Machine.OpenFiles)
	return most
}
