package main

import (
	"os/exec"
	"syscall"
)

// endWithParent lets the kernel end the process when this one is gone, however it went: no broker outlives a demonstration that was killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
