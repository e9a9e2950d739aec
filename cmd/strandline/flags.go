package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline.dev/internal/config"
)

// settingFlag is the flag of a setting of the configuration file. The table of settings judges the text, with all its faults at once.
type settingFlag struct {
	text string
	kind string
}

func (f *settingFlag) Set(text string) error { f.text = text; return nil }
func (f *settingFlag) String() string        { return f.text }

// Type is what the help shows as the flag's value.
func (f *settingFlag) Type() string { return f.kind }

// valueName is what the help calls a value of the setting.
func valueName(s *config.Setting) string {
	switch {
	case s.Type == config.List:
		return "LIST"
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, "|")
	case s.Type == config.Bool:
		return "true|false"
	case s.Type == config.Int, s.Type == config.Short, s.Type == config.Long, s.Type == config.Double:
		return "NUMBER"
	case s.Type == config.Duration:
		return "DURATION"
	case strings.HasSuffix(s.Name, "address"), s.Name == "advertise":
		return "HOST:PORT"
	case strings.HasSuffix(s.Name, ".dir"):
		return "DIR"
	}
	return "TEXT"
}

// flagName is the flag of a setting: node.id is --node-id.
func flagName(setting string) string { return strings.ReplaceAll(setting, ".", "-") }

// addSettingFlags makes a flag of every scalar setting of the configuration file. The help lists those of the node and of its first
// listener; the others are many, and docs/reference/config.md has them.
func addSettingFlags(flags *pflag.FlagSet) {
	eachSetting(func(name string, s *config.Setting) {
		flags.Var(&settingFlag{kind: valueName(s)}, flagName(name), strings.ReplaceAll(s.Doc, "`", "")) // pflag takes a quoted word for the value's name
		if strings.HasPrefix(name, "kafka.") || strings.HasPrefix(name, "listeners.") && !strings.HasPrefix(name, "listeners.0.") {
			flags.Lookup(flagName(name)).Hidden = true
		}
	})
}

// eachSetting visits every scalar setting under its full name.
func eachSetting(fn func(name string, s *config.Setting)) {
	for _, s := range config.All(config.ScopeNode) {
		fn(s.Name, s)
	}
	for i := range config.ListenersMax {
		for _, key := range config.ListenerKeys() {
			name := "listeners." + strconv.Itoa(i) + "." + key
			if s, err := config.Find(name); err == nil {
				fn(name, s)
			}
		}
	}
	for _, s := range config.All(config.ScopeBroker) {
		fn("kafka."+s.Name, s)
	}
}

// givenSettings are the settings that were given as flags.
func givenSettings(flags *pflag.FlagSet) map[string]string {
	given := map[string]string{}
	eachSetting(func(name string, _ *config.Setting) {
		if f := flags.Lookup(flagName(name)); f != nil && f.Changed {
			given[name] = f.Value.String()
		}
	})
	return given
}

// flagError says what is wrong with a flag in the words of the command line: pflag hands on those of package strconv.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &invalid):
		if want := wanted(invalid.GetFlag()); want != "" {
			return usagef("%s %q: want %s", flagTitle(invalid.GetFlag()), invalid.GetValue(), want)
		}
		return usagef("%s %q: %w", flagTitle(invalid.GetFlag()), invalid.GetValue(), invalid.Unwrap())
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := config.NearestOf(unknown.GetSpecifiedName(), names); near != "" {
			return usagef("%w, did you mean --%s?", err, near)
		}
	}
	return usageError{err}
}

// flagTitle is how a person types the flag.
func flagTitle(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return fmt.Sprintf("-%s (--%s)", f.Shorthand, f.Name)
	}
	return "--" + f.Name
}

// wanted says in words which values a flag takes, "" when the flag's own error does.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int16", "int32", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "int32Slice":
		return "whole numbers, separated by commas"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 10s or 250ms"
	}
	return ""
}
