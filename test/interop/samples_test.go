package interop

import (
	"testing"

	"strandline.dev/test/interop/steps"
)

// compare fails the test with the first difference between what was sent and what was read.
func compare(t *testing.T, want, got steps.Record, l steps.Lenience) {
	t.Helper()
	if err := steps.Compare(want, got, l); err != nil {
		t.Errorf("offset %d: %v", got.Offset, err)
	}
}
