package main

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"strandline.dev/internal/node"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// startFailure says why a node did not start and what to do about it. The node's own words are kept whole: they name the address, the file
// or the setting, which reason, made for the errors of a client, would drop.
func startFailure(err error, dev bool) error {
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = strings.ReplaceAll(text, context.DeadlineExceeded.Error(), "not done in time")
	}
	f := &failure{what: "the node could not start", why: errors.New(text)}
	var bind *node.BindError
	var metadata *quorum.CorruptError
	var log *storage.CorruptError
	switch {
	case errors.As(err, &bind):
		f.todo = "choose another address with " + addressFlag(bind.Key, dev)
		if errors.Is(err, syscall.EADDRINUSE) {
			f.todo = "end the process that listens there, or " + f.todo
		}
	case errors.Is(err, sys.ErrLocked):
		f.todo = "end that process, or give another directory with --data-dir"
	case errors.As(err, &metadata) || errors.As(err, &log): // damaged records take a partition offline, never a node
		f.todo = "put the file back; or, while most of the other controllers run, start with an empty data directory (docs/operating/controllers.md, A damaged disk)"
	case errors.Is(err, storage.ErrForeign):
		f.todo = "give an empty directory with --data-dir"
	}
	return f
}

// addressFlag is the flag, and for serve the key of the file, that holds an address.
func addressFlag(key string, dev bool) string {
	switch {
	case !dev:
		return "--" + flagName(key) + " (" + key + " in the file)"
	case key == "http.address":
		return "--http; 127.0.0.1:0 takes a free port"
	}
	return "--kafka; 127.0.0.1:0 takes a free port"
}
