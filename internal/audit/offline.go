package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/sys"
)

// offlineFile is where acts on a stopped node wait, in its data directory, a line of JSON each, until it runs and the trail has them.
const offlineFile = "offline-acts"

// Act is something that was done to the data directory of a node that was stopped.
type Act struct {
	At    time.Time  `json:"at"`
	Event auth.Event `json:"event"`
}

// unfinished is the outcome of an act of which nobody has said how it ended.
const unfinished = "not known: the command did not end"

// BeginOffline writes an act down before it is done. ended says what became of it, "" for done.
func BeginOffline(fsys sys.FS, dir string, a Act) (ended func(outcome string) error, err error) {
	acts, err := readActs(fsys, dir)
	if err != nil {
		return nil, err
	}
	if len(acts) >= offlineActsMax {
		return nil, fmt.Errorf("%d acts wait in %s for the node to run: start it first", len(acts), filepath.Join(dir, offlineFile))
	}
	a.Event.What = auth.Change
	write := func(outcome string) error {
		a.Event.Outcome = outcome
		return writeActs(fsys, dir, append(acts[:len(acts):len(acts)], a))
	}
	return write, write(unfinished)
}

func writeActs(fsys sys.FS, dir string, acts []Act) error {
	var b bytes.Buffer
	for i := range acts {
		if err := json.NewEncoder(&b).Encode(&acts[i]); err != nil {
			return err
		}
	}
	return sys.WriteFileAtomic(fsys, filepath.Join(dir, offlineFile), b.Bytes())
}

func readActs(fsys sys.FS, dir string) (acts []Act, err error) {
	text, err := sys.ReadFile(fsys, filepath.Join(dir, offlineFile), offlineBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var a Act
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, offlineFile), err)
		}
		acts = append(acts, a)
	}
	return acts, nil
}

// TakeOffline has the acts that wait kept, and tries until they are. A kill between that and the removal of the file has them told twice.
func (t *Trail) TakeOffline(ctx context.Context, fsys sys.FS, dir string) {
	acts, err := readActs(fsys, dir)
	if err != nil {
		t.cfg.Log.Error("what was done while this node was stopped is not in the audit trail", "error", err)
		return
	}
	for i := range acts {
		ev := acts[i].Event
		ev.After = fmt.Sprintf("%s (on the stopped node, at %s)", ev.After, acts[i].At.UTC().Format(time.RFC3339))
		done, err := t.Begin(ctx, ev)
		for err != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(offlineRetry):
			}
			done, err = t.Begin(ctx, ev)
		}
		done(ev.Outcome)
	}
	if len(acts) > 0 {
		if err := fsys.Remove(filepath.Join(dir, offlineFile)); err != nil {
			t.cfg.Log.Warn("acts that are in the audit trail will be there again after the next start", "error", err)
		}
	}
}
