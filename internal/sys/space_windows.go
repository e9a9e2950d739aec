package sys

import (
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// systemSpace asks the volume that holds name. Quotas of the user count.
func systemSpace(name string) (Space, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return Space{}, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: name, Err: err}
	}
	var usable, total uint64
	if err := windows.GetDiskFreeSpaceEx(path, &usable, &total, nil); err != nil {
		return Space{}, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: name, Err: err}
	}
	return Space{Total: int64(min(total, math.MaxInt64)), Usable: int64(min(usable, math.MaxInt64))}, nil
}
