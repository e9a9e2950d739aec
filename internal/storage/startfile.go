package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"strandline.dev/internal/sys"
)

// The start file holds two slots, startSlotStride apart, so that they share no sector and no page. Each change overwrites the
// slot that does not hold the newest valid state, in place, and syncs it: no space is allocated, so a node can start on a full
// disk, and a torn write costs the older state only.
const (
	startFile       = "start"
	startMagic      = "SLST"
	startVersion    = 1
	startSlotStride = 4096
	startSlotBytes  = 512
	startFileBytes  = 2 * startSlotStride
)

// startState is one slot. Sequence orders the two slots; BootID is the boot of the last run whose registration was committed.
type startState struct {
	sequence uint64
	number   uint64
	bootID   string
}

func appendStartSlot(dst []byte, s startState) []byte {
	from := len(dst)
	dst = appendFrame(dst, startMagic, startVersion, func(b []byte) []byte {
		b = binary.BigEndian.AppendUint64(b, s.sequence)
		b = binary.BigEndian.AppendUint64(b, s.number)
		return appendText(b, s.bootID)
	})
	return append(dst, make([]byte, startSlotBytes-(len(dst)-from))...)
}

func decodeStartSlot(b []byte) (startState, error) {
	_, payload, _, err := openFrame(b, startMagic, startVersion)
	if err != nil {
		return startState{}, err
	}
	f := &fields{b: payload}
	s := startState{sequence: f.u64(), number: f.u64(), bootID: f.text(bootIDMax)}
	if !f.done() {
		return startState{}, fmt.Errorf("%w: wrong length of a start slot", errBadFrame)
	}
	return s, nil
}

// decodeStart returns the newest valid slot of a start file and its place.
func decodeStart(b []byte) (newest startState, slot int, ok bool) {
	for i := range 2 {
		if len(b) < i*startSlotStride+startSlotBytes {
			break
		}
		s, err := decodeStartSlot(b[i*startSlotStride : i*startSlotStride+startSlotBytes])
		if err == nil && (!ok || s.sequence > newest.sequence) {
			newest, slot, ok = s, i, true
		}
	}
	return newest, slot, ok
}

// startSlots is the open start file.
type startSlots struct {
	path   string
	fs     sys.FS
	newest startState
	slot   int
}

// openStart reads the start file. A missing or wholly damaged one counts as empty: the number is then taken from the sync-point
// file, and the unknown boot id matches nothing.
func openStart(fsys sys.FS, dir string) (*startSlots, error) {
	s := &startSlots{path: filepath.Join(dir, startFile), fs: fsys, slot: 1}
	b, err := sys.ReadFile(fsys, s.path, stateFileMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, sys.ErrTooLarge) {
		return nil, err
	}
	if newest, slot, ok := decodeStart(b); ok {
		s.newest, s.slot = newest, slot
	}
	return s, nil
}

// write makes a new state durable.
func (s *startSlots) write(number uint64, bootID string) error {
	next := startState{sequence: s.newest.sequence + 1, number: number, bootID: bootID}
	slot := 1 - s.slot
	f, err := s.fs.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil && st.Size < startFileBytes {
		// A new or shortened file: give it its full size with the first write, so that no later one allocates.
		_, err = f.WriteAt(make([]byte, startFileBytes-st.Size), st.Size)
	}
	if err == nil {
		_, err = f.WriteAt(appendStartSlot(nil, next), int64(slot)*startSlotStride)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	if s.newest.sequence == 0 {
		if err := s.fs.SyncDir(filepath.Dir(s.path)); err != nil {
			return err
		}
	}
	s.newest, s.slot = next, slot
	return nil
}
