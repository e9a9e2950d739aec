package steps

import (
	"runtime/debug"
	"strings"
)

// ModuleVersion is the version of a Go module linked into this program, without the v.
func ModuleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}
