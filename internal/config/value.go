package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"strandline.dev/internal/kafka"
)

// Check says whether the setting accepts the value. The error is a *ValueError.
func (s *Setting) Check(value string) error {
	if len(value) > ValueLenMax {
		return s.refuse(value[:32]+"...", fmt.Sprintf("is %d bytes long; the limit is %d", len(value), ValueLenMax))
	}
	if why := s.fault(value); why != "" {
		return s.refuse(value, why)
	}
	return nil
}

func (s *Setting) refuse(value, why string) error {
	if s.Secret {
		value = "(secret)"
	}
	return &ValueError{Key: s.Name, Value: value, Why: why, Allowed: s.Allowed()}
}

// fault returns what is wrong with a value, or "".
func (s *Setting) fault(value string) string {
	if s.Fixed != "" && value != s.Default {
		return "is refused: " + s.Fixed
	}
	switch s.Type {
	case Bool:
		if value != "true" && value != "false" {
			return "is not a boolean"
		}
		return ""
	case Int, Short, Long:
		return s.faultOfInteger(value)
	case Double:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) {
			return "is not a number"
		}
		return s.faultOfRange(f < float64(s.Min), f > float64(s.Max))
	case Duration:
		d, err := time.ParseDuration(value)
		if err != nil {
			return "is not a duration"
		}
		return s.faultOfRange(int64(d) < s.Min, int64(d) > s.Max)
	case List:
		for _, item := range SplitList(value) {
			if why := s.faultOfItem(item); why != "" {
				return why
			}
		}
		return ""
	}
	return s.faultOfItem(value)
}

func (s *Setting) faultOfInteger(value string) string {
	bits := map[Type]int{Int: 32, Short: 16, Long: 64}[s.Type]
	n, err := strconv.ParseInt(value, 10, bits)
	if err != nil {
		if _, err := strconv.ParseInt(value, 10, 64); err == nil {
			return fmt.Sprintf("does not fit in %d bits", bits)
		}
		return "is not an integer"
	}
	return s.faultOfRange(n < s.Min, n > s.Max)
}

func (s *Setting) faultOfRange(below, above bool) string {
	switch {
	case below:
		return "is below the minimum"
	case above:
		return "is above the maximum"
	}
	return ""
}

func (s *Setting) faultOfItem(item string) string {
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, item) {
		return "is not one of the accepted values"
	}
	return ""
}

// SplitList reads Kafka's form of a list: items separated by commas, blanks around them dropped. An empty text is an empty list.
func SplitList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// store puts a value that passes Check into the field at the address. Numbers that count milliseconds become durations.
func (s *Setting) store(at any, value string) error {
	if err := s.Check(value); err != nil {
		return err
	}
	n, _ := strconv.ParseInt(value, 10, 64)
	switch p := at.(type) {
	case *string:
		*p = value
	case *bool:
		*p = value == "true"
	case *int:
		*p = int(n)
	case *int16:
		*p = int16(n)
	case *int32:
		*p = int32(n)
	case *int64:
		*p = n
	case *kafka.NodeID:
		*p = kafka.NodeID(n)
	case *[]string:
		*p = SplitList(value)
	case *float64:
		*p, _ = strconv.ParseFloat(value, 64)
	case *time.Duration:
		*p = s.duration(value, n)
	case *Flush:
		*p = FlushSynced
		if value == FlushReplicated.String() {
			*p = FlushReplicated
		}
	case *TimestampType:
		*p = CreateTime
		if value == LogAppendTime.String() {
			*p = LogAppendTime
		}
	default:
		panic(fmt.Sprintf("config: %s is bound to a field of type %T", s.Name, at))
	}
	return nil
}

// duration converts milliseconds, or the text of a Duration. A negative number of milliseconds is Unlimited; one that does not fit is the
// longest duration there is (292 years).
func (s *Setting) duration(value string, ms int64) time.Duration {
	if s.Type == Duration {
		d, _ := time.ParseDuration(value)
		return d
	}
	switch {
	case ms < 0:
		return Unlimited
	case ms > math.MaxInt64/int64(time.Millisecond):
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
