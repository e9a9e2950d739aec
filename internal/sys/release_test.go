package sys_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"strandline.dev/internal/sys"
)

// TestReleaseBuildHasNoFaultCode looks for the names of the fault build in the binary that runs: this test's own, or the one
// that STRANDLINE_BINARY names (then a release is meant). Names of functions are in every Go binary, stripped or not. Under
// the fault tag the same search must find them, so it is known to work.
func TestReleaseBuildHasNoFaultCode(t *testing.T) {
	name, isFault := os.Getenv("STRANDLINE_BINARY"), false
	if name == "" {
		var err error
		if name, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
		isFault = sys.FaultBuild
	}
	binary, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// Joined here, so that the names are not in the binary because of this test.
	has := func(parts ...string) bool { return bytes.Contains(binary, []byte(strings.Join(parts, ""))) }
	if !has("internal/sys.", "systemFS.", "OpenFile") {
		t.Fatal("the search does not find what every build has")
	}
	if got := has("internal/sys.(*", "fault", "FS)") || has("internal/sys.", "newFault", "FS"); got != isFault {
		t.Fatalf("%s: fault code is in it: %v, want %v", name, got, isFault)
	}
}
