package main

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machine is where a figure was measured.
type machine struct {
	CPU         string `json:"cpu"`
	CPUs        int    `json:"cpus"`        // that this process may use
	MemoryBytes int64  `json:"memoryBytes"` // 0 when unknown
	OS          string `json:"os"`
	Go          string `json:"go"`
}

// readMachine says what this machine is, as far as it tells.
func readMachine() machine {
	m := machine{CPU: runtime.GOARCH + " (model unknown)", CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Go: runtime.Version()}
	if model := procValue("/proc/cpuinfo", "model name"); model != "" {
		m.CPU = model
	}
	if kb, _, _ := strings.Cut(procValue("/proc/meminfo", "MemTotal"), " "); kb != "" {
		if n, err := strconv.ParseInt(kb, 10, 64); err == nil {
			m.MemoryBytes = n << 10
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.OS += " " + strings.TrimSpace(string(release))
	}
	return m
}

// procValue finds "key: value" in a file of /proc; "" where there is none.
func procValue(file, key string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
