package steps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Names are the steps in the order of the table in the README.
var Names = []string{
	"create", "none", "gzip", "snappy", "lz4", "zstd", "keys", "values", "headers", "null-headers",
	"group", "commit", "restart-consumer", "kill-9", "by-time", "seek", "describe-group", "reset-group", "delete-group", "delete-topic",
}

// Codecs are the names of Kafka's compression types; each is a step and the end of a topic's name.
var Codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// stepTimeMax bounds one step: a rebalance after a lost member takes a session timeout, which clients leave at up to 45 s.
const stepTimeMax = 75 * time.Second

// listTimeMax and listEvery bound the wait for what was created or deleted to be listed so.
const (
	listTimeMax = 5 * time.Second
	listEvery   = 50 * time.Millisecond
)

// ErrNotOffered is returned by an adapter for what its client has no call for.
var ErrNotOffered = errors.New("not offered")

// report runs one step and prints its line; the result is false when the step failed or is not offered.
func (r *run) report(name string, do func(context.Context) error) bool {
	if why, lacks := r.client.Lacks[name]; lacks {
		fmt.Printf("step %s not-offered %s\n", name, why)
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeMax)
	defer cancel()
	started := time.Now()
	err := do(ctx)
	fmt.Fprintf(os.Stderr, "%s took %v\n", name, time.Since(started).Round(time.Millisecond))
	if err != nil {
		r.failed = true
		fmt.Printf("step %s FAIL %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		return false
	}
	fmt.Printf("step %s ok\n", name)
	return true
}

// restart asks the driver to kill and restart the broker, and returns when it is ready again.
func (r *run) restart() error {
	fmt.Println("RESTART")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "DONE" {
		return fmt.Errorf("the driver answered %q: %v", line, err)
	}
	return nil
}

// Brokers are the addresses that the driver gave.
func Brokers() []string { return strings.Split(os.Args[1], ",") }

// Replicas is how many copies of its topics the walk asks for.
func Replicas() int16 {
	n, err := strconv.ParseInt(os.Getenv("REPLICAS"), 10, 16)
	if err != nil {
		return 1
	}
	return int16(n)
}
