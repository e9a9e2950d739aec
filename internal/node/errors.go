package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// BindError means that an address of the configuration could not be listened on. Nothing on disk was touched.
type BindError struct {
	// Key is the setting that holds the address: "listeners.0.address" or "http.address".
	Key string
	// Door says whose address it is: "listener plain" or "http".
	Door    string
	Address string
	Err     error
}

func (e *BindError) Error() string {
	return fmt.Sprintf("%s cannot listen on %s: %s", e.Door, e.Address, innermost(e.Err))
}

// Unwrap gives the operating system's error.
func (e *BindError) Unwrap() error { return e.Err }

// innermost is the operating system's own words: package net repeats the address around them, without saying whose it is.
func innermost(err error) string {
	var call *os.SyscallError
	var op *net.OpError
	switch {
	case errors.As(err, &call):
		return call.Err.Error()
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

// stepError adds which step of the start failed, unless the error says so itself: a reader needs each fact once.
func stepError(step string, err error) error {
	var bind *BindError
	if errors.As(err, &bind) || strings.HasPrefix(err.Error(), step) {
		return err
	}
	return fmt.Errorf("%s: %w", step, err)
}
