//go:build netbsd || openbsd

package sys

import (
	"errors"
	"os"
)

// systemSpace is not there: these systems have other calls, and no node of ours runs on them.
func systemSpace(name string) (Space, error) {
	return Space{}, &os.PathError{Op: "statfs", Path: name, Err: errors.ErrUnsupported}
}
