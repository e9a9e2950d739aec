//go:build fault

package sys

import (
	"crypto/rand"
	"sync"
)

// FaultBuild tells whether this binary loses unsynced bytes at kill -9 on purpose (build tag `fault`). Never in a release.
const FaultBuild = true

// faultMachine is one per process: all callers must see the same unsynced bytes and the same boot.
var faultMachine = sync.OnceValue(func() Machine {
	boot := "fault-" + rand.Text()
	return Machine{FS: newFaultFS(), Net: systemNet{}, Wall: systemWall{}, BootID: func() string { return boot }, Space: systemSpace, OpenFiles: systemOpenFiles()}
})

// Real returns this machine, with a file system that forgets unsynced bytes when the process dies and a boot id that is
// new at each start, so that kill -9 is a power cut.
func Real() Machine { return faultMachine() }
