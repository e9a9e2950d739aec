package interop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline.dev/test/interop/steps"
)

// TestDriver_RefusesWhatWasNotDone: a program that leaves a step out, repeats one, fails one, invents one, claims the restart
// without asking for it, gives no reason for what it lacks, or ends badly does not pass.
func TestDriver_RefusesWhatWasNotDone(t *testing.T) {
	complete := func(change func(name string) string) []string {
		var out []string
		for _, name := range steps.Names {
			out = append(out, strings.Split(change(name), "\n")...)
		}
		return out
	}
	instead := func(of, lines string) []string {
		return complete(func(name string) string {
			if name == of {
				return lines
			}
			return "step " + name + " ok"
		})
	}
	for _, c := range []struct {
		name   string
		lines  []string
		killed bool
		ended  error
		want   string
	}{
		{"all", instead("", ""), true, nil, ""},
		{"lacks one", instead("seek", "step seek not-offered it cannot"), true, nil, ""},
		{"left out", instead("seek", "anything else"), true, nil, "seek: not reported"},
		{"twice", instead("seek", "step seek ok\nstep seek ok"), true, nil, "seek: reported twice"},
		{"failed", instead("seek", "step seek FAIL the offset was 3"), true, nil, "seek: the offset was 3"},
		{"no reason", instead("seek", "step seek not-offered"), true, nil, "seek: "},
		{"invented", instead("seek", "step seek ok\nstep sing ok"), true, nil, "sing: no step of the walk"},
		{"no restart", instead("", ""), false, nil, "kill-9: the program never asked for the restart\nkill-9: not reported"},
		{"ended badly", instead("", ""), true, errors.New("exit status 1"), "the program: exit status 1"},
	} {
		log, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{t: t, log: log, killed: c.killed, out: outcome{steps: map[string]string{}}}
		for _, line := range c.lines {
			r.line(line)
		}
		if got := strings.Join(r.verdict(c.ended), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		_ = log.Close()
	}
}
