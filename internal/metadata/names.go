package metadata

import (
	"fmt"
	"strconv"
	"strings"
)

// topicNameFault says why a topic cannot have a name, or "". The rules are Kafka's; the texts name the limit (R6).
func topicNameFault(name string) string {
	switch {
	case name == "":
		return "the empty string is not allowed as a topic name"
	case name == "." || name == "..":
		return fmt.Sprintf("topic name %q is not allowed", name)
	case len(name) > TopicNameLenMax:
		return fmt.Sprintf("topic name has %d characters; the limit is %d", len(name), TopicNameLenMax)
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-') {
			return fmt.Sprintf("topic name %q has the character %q; allowed are letters, digits, '.', '_' and '-'", name, r)
		}
	}
	return ""
}

// canonicalName is the same for names that differ only in "." and "_": metric names cannot tell those apart, so Kafka refuses the second one.
func canonicalName(name string) string { return strings.ReplaceAll(name, ".", "_") }

func hasLookalikes(name string) bool { return strings.ContainsAny(name, "._") }

// lookalike returns the topic, other than the one with the very name, that a name collides with, or nil.
func (i *Image) lookalike(name string) *Topic {
	if !hasLookalikes(name) {
		return nil
	}
	id, ok := i.alike.get(canonicalName(name))
	if !ok {
		return nil
	}
	if t := i.TopicByID(id); t != nil && t.Name != name {
		return t
	}
	return nil
}

// parsePositive reads a number from 1.
func parsePositive(s string) (int32, bool) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int32(n), err == nil && n > 0
}
