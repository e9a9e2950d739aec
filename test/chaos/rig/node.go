package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"strandline.dev/test/chaos/proxy"
)

// stopMax bounds an orderly stop.
const stopMax = 60 * time.Second

// Node is one serve process over a data directory that outlives it.
type Node struct {
	ID int32
	// Controller and Broker are its roles.
	Controller, Broker bool
	// Dir is the data directory; Kafka, HTTP and Peer are what the process binds.
	Dir, Kafka, HTTP, Peer string
	// Clients stands before Kafka; nil without proxies.
	Clients *proxy.Proxy

	cluster *Cluster
	cmd     *exec.Cmd
	ready   chan struct{} // closed at the ready line
	done    chan struct{} // closed when the process is gone
	paused  bool
}

// Advertised is the address that clients are told.
func (n *Node) Advertised() string {
	if n.Clients != nil {
		return n.Clients.Address()
	}
	return n.Kafka
}

func (n *Node) logPath() string { return filepath.Join(n.cluster.o.Dir, fmt.Sprintf("n%d.log", n.ID)) }

// controllers is the list of controllers as this node sees them: itself where it listens, the others behind its proxies once the cluster
// has been formed.
func (n *Node) controllers() string {
	var out []string
	for _, to := range n.cluster.Nodes {
		if !to.Controller {
			continue
		}
		address := to.Peer
		if p := n.cluster.links[n.ID-1]; n.cluster.formed && p != nil && to != n {
			address = p[to.ID-1].Address()
		}
		out = append(out, fmt.Sprintf("%q", fmt.Sprintf("%d@%s", to.ID, address)))
	}
	return strings.Join(out, ", ")
}

func (n *Node) config() string {
	var roles []string
	if n.Controller {
		roles = append(roles, "controller")
	}
	if n.Broker {
		roles = append(roles, "broker")
	}
	return fmt.Sprintf(`node: {id: %d, rack: r%d}
roles: [%s]
data: {dir: %s}
cluster:
  address: %s
  controllers: [%s]
listeners:
  - {name: plain, address: %s, advertise: %s}
http: {address: %s}
log: {level: info, format: text}
%s`, n.ID, n.ID, strings.Join(roles, ", "), n.Dir, n.Peer, n.controllers(), n.Kafka, n.Advertised(), n.HTTP, n.cluster.o.Extra)
}

// Running says whether the process has been started and not ended.
func (n *Node) Running() bool {
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.done:
		return false
	default:
		return true
	}
}

// Start launches the process and returns at once. Its proxies accept again.
func (n *Node) Start() error {
	file := filepath.Join(n.cluster.o.Dir, fmt.Sprintf("n%d.yaml", n.ID))
	if err := os.MkdirAll(filepath.Dir(n.Dir), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(n.config()), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	cmd := exec.Command(n.cluster.o.Binary, "serve", "--config", file)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := n.listen(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ready, done := make(chan struct{}), make(chan struct{})
	n.cmd, n.ready, n.done, n.paused = cmd, ready, done, false
	go func() {
		lines, said := bufio.NewScanner(out), false
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready ") && !said {
				said = true
				close(ready)
			}
		}
		_ = cmd.Wait()
		close(done)
	}()
	return nil
}

// Ready waits until the process accepts work.
func (n *Node) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartMax)
	defer cancel()
	select {
	case <-n.ready:
		return nil
	case <-n.done:
		return fmt.Errorf("node %d ended before it was ready", n.ID)
	case <-ctx.Done():
		return fmt.Errorf("node %d is not ready: %w", n.ID, ctx.Err())
	}
}

// Kill sends SIGKILL and waits until the process is gone. Its proxies refuse, as the operating system does for a process that is gone.
func (n *Node) Kill() {
	if !n.Running() {
		return
	}
	_ = n.cmd.Process.Kill()
	n.refuse()
	<-n.done
}

// Stop sends SIGTERM and waits for exit code 0.
func (n *Node) Stop() error {
	if err := n.Terminate(); err != nil {
		return err
	}
	return n.Wait()
}

// Terminate sends SIGTERM and does not wait.
func (n *Node) Terminate() error {
	n.Resume()
	return n.cmd.Process.Signal(syscall.SIGTERM)
}

// Wait waits for the end that Terminate has asked for.
func (n *Node) Wait() error {
	late := time.NewTimer(stopMax)
	defer late.Stop()
	select {
	case <-n.done:
		n.refuse()
	case <-late.C:
		_ = n.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to the log
		<-n.done
		n.refuse()
		return fmt.Errorf("node %d did not stop within %v of SIGTERM", n.ID, stopMax)
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("node %d: exit code %d after SIGTERM", n.ID, code)
	}
	return nil
}

// Pause stops the process where it stands (SIGSTOP).
func (n *Node) Pause() {
	n.paused = true
	_ = n.cmd.Process.Signal(syscall.SIGSTOP)
}

// Resume lets a paused process go on.
func (n *Node) Resume() {
	if n.paused {
		n.paused = false
		_ = n.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// Pid is the process id.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Disk is the directory that a small disk is mounted at; the data directory is in it.
func (n *Node) Disk() string { return filepath.Dir(n.Dir) }

// Wipe empties the data directory of a node that is down.
func (n *Node) Wipe() error {
	if n.Running() {
		return errors.New("the node runs")
	}
	entries, err := os.ReadDir(n.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(n.Dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// proxies are those that lead to this node.
func (n *Node) proxies() []*proxy.Proxy {
	if n.Clients == nil {
		return nil
	}
	out := []*proxy.Proxy{n.Clients}
	for i := range n.cluster.Nodes {
		if p := n.cluster.links[i][n.ID-1]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (n *Node) refuse() {
	for _, p := range n.proxies() {
		p.Down()
	}
}

func (n *Node) listen() error {
	for _, p := range n.proxies() {
		if err := p.Up(); err != nil {
			return err
		}
	}
	return nil
}
