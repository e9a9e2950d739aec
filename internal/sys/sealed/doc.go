// Package sealed keeps files on a disk so that they are of no use without a key, and so that nobody can change them unnoticed.
//
// Knows: the keyring file and the three things that are asked of it (Keys), the format of a sealed file (docs/formats/sealed.md), and a
// file system that seals the files that hold records and metadata. Does not know: logs, batches, nodes.
//
// A sealed file is a header, which holds the file's own data key wrapped by a key of the keyring, and frames. Each write appends frames;
// nothing that was written is written again, so a torn write harms nothing older. Who reads and writes sees the plain bytes at plain
// positions. Bytes whose frame is not whole or was changed read as zeros: the checksums of what lies above find them, and judge them as they
// judge a page that never reached the disk, or damage (I11). A file whose key is not there is an error that names the key, and never empty.
//
// Rotation: new files take the newest key of the keyring, which is read again when a file is made; older files keep theirs, and only need it
// to stay in the keyring.
//
// Invariants: I11 (changed bytes are found), I14 (a file in use costs one mark for 64 KiB, and one block).
//
// Concurrency: a File may be used by any number of goroutines; its lock is a leaf and held over reads and writes of the file.
//
// Files: keys.go (the interface), errors.go, keyring.go (the file), header.go, frame.go, file.go (a sealed file), read.go, writing.go (the
// memory of a write), fs.go (the file system), limits.go.
package sealed
