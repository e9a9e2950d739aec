package interop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// leaveMax bounds how long a member takes to leave: it may have to find its coordinator first.
const leaveMax = 30 * time.Second

// churnMember is one program that is a member of the group.
type churnMember struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	heard chan struct{} // closed when its last line has been heard
}

func startMember(name string, args []string, logPath string, book *churnBook) (*churnMember, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	m := &churnMember{name: name, cmd: exec.Command(args[0], args[1:]...), heard: make(chan struct{})}
	m.cmd.Stderr = log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(m.heard)
		defer func() { _ = log.Close() }()
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			_, _ = fmt.Fprintln(log, time.Now().Format("15:04:05.000"), lines.Text())
			book.line(name, lines.Text())
		}
	}()
	return m, nil
}

// kill ends the member with -9.
func (m *churnMember) kill() {
	_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL)
	<-m.heard
	_ = m.cmd.Wait()
}

// leave asks the member to go.
func (m *churnMember) leave() error {
	if err := m.stdin.Close(); err != nil {
		return err
	}
	select {
	case <-m.heard:
		return m.cmd.Wait()
	case <-time.After(leaveMax):
		m.kill()
		return errors.New("it has not left in time")
	}
}
