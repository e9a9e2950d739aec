package quorum

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pieces serves a snapshot's bytes in pieces of step bytes, as another node does.
func pieces(b []byte, id snapshotID, step int) pieceSource {
	return func(_ context.Context, ask *pieceAsk, answer *piece) error {
		rest := b[ask.Offset:]
		*answer = piece{Index: id.Index, Term: id.Term, Size: int64(len(b)), Bytes: rest[:min(step, len(rest))]}
		return nil
	}
}

// TestK63_AlteredSnapshotIsNotTaken: whichever byte another node alters, and however it lies about the pieces, nothing is made of them.
func TestK63_AlteredSnapshotIsNotTaken(t *testing.T) {
	snap := testSnapshot(t)
	b, err := encodeSnapshot(snap)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pullSnapshot(t.Context(), pieces(b, snap.snapshotID, 100), nil); err != nil || got.snapshotID != snap.snapshotID {
		t.Fatalf("the true bytes: %v, %v", got.snapshotID, err)
	}
	for at := range b {
		altered := bytes.Clone(b)
		altered[at] ^= 1 << (at % 8)
		_, err := pullSnapshot(t.Context(), pieces(altered, snap.snapshotID, 1+at%500), &snap.snapshotID)
		if !errors.Is(err, errSnapshotChecksum) && !errors.Is(err, errSnapshotMagic) {
			t.Fatalf("byte %d altered: %v", at, err)
		}
	}
	for what, source := range map[string]struct {
		from pieceSource
		want error
	}{
		"another snapshot under the name": {pieces(b, snapshotID{snap.Index, snap.Term + 1}, 100), errSnapshotIndex},
		"whole bytes of another index":    {pieces(b, snapshotID{snap.Index + 1, snap.Term}, len(b)), errSnapshotIndex},
		"pieces without bytes":            {pieces(b, snap.snapshotID, 0), errPiece},
		"a size that grows": {func(ctx context.Context, ask *pieceAsk, answer *piece) error {
			err := pieces(b, snap.snapshotID, 100)(ctx, ask, answer)
			answer.Size += ask.Offset
			return err
		}, errPiece},
		"more bytes than the size": {func(ctx context.Context, ask *pieceAsk, answer *piece) error {
			err := pieces(b, snap.snapshotID, 100)(ctx, ask, answer)
			answer.Size = 50
			return err
		}, errPiece},
	} {
		id := &snap.snapshotID
		if errors.Is(source.want, errSnapshotIndex) {
			id = nil // whatever is newest there
		}
		if _, err := pullSnapshot(t.Context(), source.from, id); !errors.Is(err, source.want) {
			t.Errorf("%s: %v, want %v", what, err, source.want)
		}
	}
}

// TestK63_AlteredSnapshotIsNotInstalled: a node that is behind gets altered bytes from its peers: it keeps what it has, says so, and catches up when
// there is a snapshot that is whole.
func TestK63_AlteredSnapshotIsNotInstalled(t *testing.T) {
	for _, observing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, 3)
			var said bytes.Buffer // the handler locks
			c.log = slog.New(slog.NewTextHandler(&said, nil))
			away := c.behind(observing)
			sleepInBubble(3 * time.Second) // a quiet moment: the next snapshot comes with the next entries
			behind := c.disks[away].Files()
			altered := 0
			for id, m := range c.nodes {
				for name, b := range m.fs.Files() {
					if !strings.HasSuffix(name, snapshotSuffix) {
						continue
					}
					if err := m.fs.FlipBit(name, int64(len(b)/2), 3); err != nil {
						t.Fatalf("node %d: %v", id, err)
					}
					altered++
				}
			}
			if altered == 0 {
				t.Fatal("no node has a snapshot")
			}
			c.start(away)
			sleepInBubble(5 * time.Second)
			for name := range c.nodes[away].fs.Files() {
				if _, had := behind[name]; !had && (strings.HasSuffix(name, snapshotSuffix) || strings.HasSuffix(name, stagedSuffix)) {
					t.Errorf("%s was installed", name)
				}
			}
			c.agree(c.fill(12)) // the next snapshots are whole
			c.end()
			if !strings.Contains(said.String(), errSnapshotChecksum.Error()) {
				t.Errorf("nothing was said of the altered bytes:\n%s", &said)
			}
		})
	}
}
