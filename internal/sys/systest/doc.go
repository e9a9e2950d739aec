// Package systest is a machine inside a test: a file system that can lose power, a network that can be cut, a clock that can
// be set.
//
// Knows: what a crash may do to bytes and names that were not synced, and what a cut does to bytes on their way.
//
// Does not know: who uses it.
//
// Fault model of the file system (written before any fault is injected; what is not listed here is not a fair fault):
//   - Bytes written since the last Sync of a file are pending, by 4 KiB page. A power cut keeps any subset of the pending
//     pages, may tear the last kept one at a 512-byte border, and may keep the grown size without the bytes (a zero tail).
//   - A pending Truncate may or may not have happened; if it did not, what was written beyond it since has not either.
//   - Creating, renaming and removing names is pending per directory until SyncDir; a power cut keeps a prefix of each
//     directory's changes. A rename between directories happens in both or in neither.
//   - SyncAll makes all files and directories durable.
//   - A failed Sync drops the pending pages of the file and marks them clean: reads still see them, a later Sync succeeds,
//     and a power cut shows that they were never written (I11). A failed SyncAll does that to one file, or to all.
//   - kill -9 (KillProcess) keeps everything, and what was pending stays pending. Locks end.
//   - A full disk writes what fits and answers ENOSPC.
//   - FlipBit, Zero and Cut change bytes that were durable. A test uses them on fewer replicas than it takes to lose data.
//
// Fault model of the network: connections are reliable and ordered, like TCP. A cut of one direction holds bytes back, the
// end of the stream included, until it is healed; a dial over a cut waits. A killed host refuses dials and resets what was
// open, unless a cut keeps the news from arriving.
//
// Before taking a crash image of a host, cut its network in both directions (or Kill it): otherwise it may acknowledge
// something after the image was taken, and the test reports a loss that never happened. Crash makes every later operation
// of the old file system fail, which covers acknowledgements that wait for a sync.
//
// Concurrency: everything may be called from any goroutine, and works inside testing/synctest bubbles (create the values
// inside the bubble). No lock is held while anything waits: hooks and latency run without one.
//
// Files: fs.go (names), file.go (open files), inode.go (bytes and pages), journal.go (pending names), crash.go (what
// survives), faults.go (hooks, limits, damage), space.go, net.go and conn.go, wall.go, machine.go.
package systest
