package storage

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	cleanFile    = "clean-shutdown"
	cleanMagic   = "SLCL"
	cleanVersion = 1
)

// cleanMarker says that a run ended with everything loaded and flushed. startNumber binds it to that run: a marker whose
// removal a power cut undid belongs to an older one.
type cleanMarker struct {
	brokerEpoch kafka.BrokerEpoch
	startNumber uint64
	bootID      string
}

func encodeClean(m cleanMarker) []byte {
	return appendFrame(nil, cleanMagic, cleanVersion, func(b []byte) []byte {
		b = appendI64(b, int64(m.brokerEpoch))
		b = binary.BigEndian.AppendUint64(b, m.startNumber)
		return appendText(b, m.bootID)
	})
}

func decodeClean(b []byte) (cleanMarker, error) {
	f, err := openFile(b, cleanMagic, cleanVersion)
	if err != nil {
		return cleanMarker{}, err
	}
	m := cleanMarker{brokerEpoch: kafka.BrokerEpoch(f.i64()), startNumber: f.u64(), bootID: f.text(bootIDMax)}
	if !f.done() {
		return cleanMarker{}, errBadFrame
	}
	return m, nil
}

// takeClean reads the marker of the previous run and deletes it, durably, before any log is opened: from here on a crash is
// not a clean stop. A marker that cannot be read counts as absent.
func (d *Dir) takeClean(previousNumber uint64) error {
	name := filepath.Join(d.path, cleanFile)
	b, err := sys.ReadFile(d.fs, name, stateFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		if m, bad := decodeClean(b); bad != nil {
			d.log.Warn("the clean-shutdown marker is damaged and counts as absent", "dir", d.path, "error", bad)
		} else if m.startNumber == previousNumber {
			d.clean, d.isClean = m, true
		}
	}
	if err := d.fs.Remove(name); err != nil {
		return err
	}
	return d.fs.SyncDir(d.path)
}

// CleanShutdown returns the broker epoch of the previous run if that run ended cleanly.
func (d *Dir) CleanShutdown() (kafka.BrokerEpoch, bool) { return d.clean.brokerEpoch, d.isClean }

func (d *Dir) writeClean(epoch kafka.BrokerEpoch) error {
	m := cleanMarker{brokerEpoch: epoch, startNumber: d.number, bootID: clipped(d.bootID, bootIDMax)}
	return sys.WriteFileAtomic(d.fs, filepath.Join(d.path, cleanFile), encodeClean(m))
}

func clipped(s string, limit int) string { return s[:min(len(s), limit)] }
