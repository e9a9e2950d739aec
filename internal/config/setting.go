package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Scope says where a setting lives.
type Scope uint8

// The scopes.
const (
	// ScopeNode settings stand in strandline.yaml outside "kafka:".
	ScopeNode Scope = iota + 1
	// ScopeBroker settings carry Kafka's broker names; they stand under "kafka:" and, where live, can be changed by AlterConfigs.
	ScopeBroker
	// ScopeTopic settings are set per topic.
	ScopeTopic
)

// String returns "node setting", "broker setting" or "topic config".
func (s Scope) String() string {
	switch s {
	case ScopeNode:
		return "node setting"
	case ScopeBroker:
		return "broker setting"
	case ScopeTopic:
		return "topic config"
	}
	return "setting"
}

// Type is the type of a value. The numbers are those of Kafka's DescribeConfigs (KIP-569); Duration is ours and is described as a
// string.
type Type int8

// The types.
const (
	Bool     Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
	// Duration is a Go duration such as "2s" or "250ms"; node settings use it.
	Duration Type = 100
)

// String returns the type's name in the reference page.
func (t Type) String() string {
	switch t {
	case Bool:
		return "boolean"
	case String, Class:
		return "string"
	case Int, Short, Long:
		return "integer"
	case Double:
		return "number"
	case List:
		return "list"
	case Password:
		return "secret"
	case Duration:
		return "duration"
	}
	return "unknown"
}

// Wire returns the type's number in DescribeConfigs.
func (t Type) Wire() int8 {
	if t == Duration {
		return int8(String)
	}
	return int8(t)
}

// Setting is one row of the table.
type Setting struct {
	Name string
	Type Type
	// Default is the value as text; DevDefault replaces it under `dev` when not nil.
	Default    string
	DevDefault *string
	Doc        string
	Scope      Scope
	// Live says that a change takes effect without a restart.
	Live bool
	// Secret values are never shown.
	Secret bool
	// Enum lists the accepted values (of a List: of its items).
	Enum []string
	// Min and Max bound a number, or a duration in nanoseconds; math.MinInt64 and math.MaxInt64 mean no bound. In a literal row a Max of
	// 0 also means no bound.
	Min, Max int64
	// Synonym is, for a topic config, the broker setting that gives its default; "" if none.
	Synonym string
	// ZeroUnset says that 0, the default, stands for "not set" and is not a choice: Node.Validate refuses it.
	ZeroUnset bool
	// Fixed, when not empty, says why only the default is accepted.
	Fixed string

	// node, broker or topic, by Scope, gives the address of the struct field that holds the value. None is set for a setting that is only
	// checked and shown.
	node   func(*Node) any
	broker func(*Broker) any
	topic  func(*Topic) any
	// hidden rows are stored by the controller and neither listed nor accepted from a client.
	hidden bool
}

// DefaultFor returns the default as text, under `dev` or not.
func (s *Setting) DefaultFor(dev bool) string {
	if dev && s.DevDefault != nil {
		return *s.DevDefault
	}
	return s.Default
}

// Allowed describes the accepted values in words.
func (s *Setting) Allowed() string {
	switch {
	case s.Fixed != "":
		return "only " + s.Default
	case len(s.Enum) > 0 && s.Type == List:
		return "a comma-separated list of " + strings.Join(s.Enum, ", ")
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, ", ")
	}
	switch s.Type {
	case Bool:
		return "true, false"
	case Int, Long, Short, Double:
		return "a number" + s.bounds(func(n int64) string { return strconv.FormatInt(n, 10) })
	case Duration:
		return "a duration such as 2s" + s.bounds(func(n int64) string { return time.Duration(n).String() })
	}
	return ""
}

func (s *Setting) bounds(show func(int64) string) string {
	low, high := s.Min != math.MinInt64, s.Max != math.MaxInt64
	least := s.Min
	if s.ZeroUnset {
		least = 1
	}
	switch {
	case low && high:
		return fmt.Sprintf(" from %s to %s", show(least), show(s.Max))
	case low:
		return " of at least " + show(least)
	case high:
		return " of at most " + show(s.Max)
	}
	return ""
}
