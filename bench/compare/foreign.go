package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// foreignMax is the part of the machine that others may take from a run.
const foreignMax = 0.05

const clockTick = 100 // USER_HZ on Linux

// machineUsage is what the processes that are not ours have used, in CPU seconds, and when that was read.
type machineUsage struct {
	seconds float64
	at      time.Time
}

// process is a line of /proc/PID/stat.
type process struct {
	pid, parent int
	seconds     float64 // its own, and that of its children that have ended
}

// readUsage adds up all processes but this one, those that it started, and the kernel's own threads: those work for the servers, too.
func readUsage() machineUsage {
	u := machineUsage{at: time.Now()}
	all := map[int]process{}
	entries, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range entries {
		if p, ok := readProcess(name); ok {
			all[p.pid] = p
		}
	}
	for _, p := range all {
		if !ours(all, p.pid) {
			u.seconds += p.seconds
		}
	}
	return u
}

const kernelThreads = 2 // the parent of them all

// ours says whether a process is this one or descends from it, or is a thread of the kernel.
func ours(all map[int]process, pid int) bool {
	for hops := 0; pid > 1 && hops < 64; hops++ {
		if pid == os.Getpid() || pid == kernelThreads {
			return true
		}
		pid = all[pid].parent
	}
	return false
}

func readProcess(name string) (process, bool) {
	b, err := os.ReadFile(name)
	if err != nil {
		return process{}, false // it has ended
	}
	text := string(b)
	pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
	// The command's name, in parentheses, may hold spaces: fields are counted behind it.
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	ticks := 0
	for _, f := range fields[11:15] { // user, system, and the same of children
		n, _ := strconv.Atoi(f)
		ticks += n
	}
	return process{pid: pid, parent: parent, seconds: float64(ticks) / clockTick}, true
}

// foreignSince is the part of the machine that others have had since.
func foreignSince(before machineUsage) float64 {
	now := readUsage()
	wall := now.at.Sub(before.at).Seconds() * float64(runtime.NumCPU())
	return max(0, (now.seconds-before.seconds)/max(wall, 1e-3))
}

// residentMB is a process's resident memory, in 10^6 bytes.
func residentMB(pid int) float64 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				kib, _ := strconv.ParseFloat(f[0], 64)
				return kib * 1024 / 1e6
			}
		}
	}
	return 0
}
