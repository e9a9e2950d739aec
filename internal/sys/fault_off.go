//go:build !fault

package sys

// FaultBuild tells whether this binary loses unsynced bytes at kill -9 on purpose (build tag `fault`). Never in a release.
const FaultBuild = false

// Real returns this machine.
func Real() Machine {
	return Machine{FS: systemFS{}, Net: systemNet{}, Wall: systemWall{}, BootID: systemBootID, Space: systemSpace, OpenFiles: systemOpenFiles()}
}
