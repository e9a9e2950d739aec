package config

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknown means that no setting has the name; the text names the nearest one.
var ErrUnknown = errors.New("unknown setting")

// ErrInvalid means that a value was refused; the text names key, value, reason and what is allowed.
var ErrInvalid = errors.New("invalid value")

// ErrReadOnly means that a setting cannot be changed while the node runs.
var ErrReadOnly = errors.New("cannot be changed while the node runs")

// ValueError says which value of which setting was refused and why. It wraps ErrInvalid.
type ValueError struct {
	Key string
	// Value is the refused text; "" when the fault is that there is none, or that the setting itself is refused.
	Value string
	// Why is the reason, for example "is below the minimum".
	Why string
	// Allowed describes the values that would be accepted.
	Allowed string
}

func (e *ValueError) Error() string {
	s := fmt.Sprintf("%s: value %q %s", e.Key, e.Value, e.Why)
	if e.Value == "" && (strings.HasPrefix(e.Why, "is not set") || strings.HasPrefix(e.Why, "is empty") || strings.HasPrefix(e.Why, "is refused")) {
		s = e.Key + " " + e.Why // there is no value to quote
	}
	if e.Allowed != "" {
		s += "; allowed: " + e.Allowed
	}
	return s
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *ValueError) Unwrap() error { return ErrInvalid }

// UnknownError says that a setting does not exist. It wraps ErrUnknown.
type UnknownError struct {
	Key string
	// Nearest is the name that looks most like Key, or "".
	Nearest string
	// Where says what was searched, for example "topic config".
	Where string
}

func (e *UnknownError) Error() string {
	s := fmt.Sprintf("unknown %s %q", e.Where, e.Key)
	if e.Nearest != "" {
		s += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return s
}

// Unwrap makes errors.Is(err, ErrUnknown) true.
func (e *UnknownError) Unwrap() error { return ErrUnknown }
