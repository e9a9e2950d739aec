// Package load reads settings from a file, the environment and flags, and says where each value came from.
//
// Knows: YAML, the names of environment variables (STRANDLINE_ and the setting's name in capitals, dots as underscores), and the
// precedence flag > environment > file > default. Does not know: how a file is found or opened, or what a setting means.
//
// Invariants: an unknown key of the file or flag is an error that names the nearest known one. An unknown variable is an error only when it
// looks like a known one: the environment is shared (Kubernetes puts STRANDLINE_SERVICE_HOST there by itself).
//
// Concurrency: pure functions.
//
// Files: load.go (precedence and origin), yaml.go (the file), limits.go, errors.go.
package load

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"strandline.dev/internal/config"
)

// envPrefix begins every environment variable of ours.
const envPrefix = "STRANDLINE_"

// Origin says where the value of one setting came from.
type Origin struct {
	Name  string
	Value string // as text; "(secret)" for a secret
	// From is "default", "dev default", "file line N", "env NAME" or "flag --name".
	From string
}

// Load merges the sources onto the defaults of `serve`. Flags are keyed by setting name ("node.id") or flag name ("node-id"). The error
// joins every fault found. Cross-checks are the caller's: config.Node.Validate.
func Load(file []byte, env []string, flags map[string]string) (config.Node, []Origin, error) {
	return load(file, env, flags, false)
}

// LoadDev is Load onto the defaults of `dev`.
func LoadDev(file []byte, env []string, flags map[string]string) (config.Node, []Origin, error) {
	return load(file, env, flags, true)
}

// layer is what one source has set.
type layer struct {
	values map[string]string
	from   map[string]string
}

func newLayer() layer { return layer{values: map[string]string{}, from: map[string]string{}} }

func load(file []byte, env []string, flags map[string]string, dev bool) (config.Node, []Origin, error) {
	merged := newLayer()
	fromFile, err := fileLayer(file)
	fromEnv, errEnv := envLayer(env)
	fromFlags, errFlags := flagLayer(flags)
	for _, l := range []layer{fromFile, fromEnv, fromFlags} {
		maps.Copy(merged.values, l.values)
		maps.Copy(merged.from, l.from)
	}
	n, errBuild := config.Build(merged.values, dev)
	if err := errors.Join(err, errEnv, errFlags, located(errBuild, merged)); err != nil {
		return n, nil, err
	}
	return n, origins(merged, dev), nil
}

// located adds to each fault where its value came from.
func located(err error, l layer) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		joined = errors.Join(err).(interface{ Unwrap() []error })
	}
	var out []error
	for _, e := range joined.Unwrap() {
		var value *config.ValueError
		var unknown *config.UnknownError
		key := ""
		switch {
		case errors.As(e, &value):
			key = value.Key
		case errors.As(e, &unknown):
			key = unknown.Key
		}
		from := l.from[key]
		if from == "" {
			from = l.from["kafka."+key]
		}
		if from != "" {
			e = fmt.Errorf("%s: %w", from, e)
		}
		out = append(out, e)
	}
	return errors.Join(out...)
}

func fileLayer(file []byte) (layer, error) {
	l := newLayer()
	values, lines, err := parse(file)
	if err != nil {
		return l, err
	}
	for name, value := range values {
		l.values[name] = value
		l.from[name] = "file line " + strconv.Itoa(lines[name])
	}
	return l, nil
}

func flagLayer(flags map[string]string) (layer, error) {
	l := newLayer()
	names := settingNames(func(name string) string { return strings.ReplaceAll(name, ".", "-") })
	for given, value := range flags {
		name := given
		if _, err := config.Find(given); err != nil {
			if full, ok := names(given); ok {
				name = full
			}
		}
		l.values[name] = value
		l.from[name] = "flag --" + strings.ReplaceAll(name, ".", "-")
	}
	return l, nil
}

func envLayer(env []string) (layer, error) {
	l := newLayer()
	names := settingNames(EnvName)
	var errs []error
	for _, entry := range env {
		variable, value, ok := strings.Cut(entry, "=")
		if !ok || !strings.HasPrefix(variable, envPrefix) {
			continue
		}
		name, known := names(variable)
		if !known {
			errs = append(errs, lookalike(variable))
			continue
		}
		l.values[name] = value
		l.from[name] = "env " + variable
	}
	return l, errors.Join(errs...)
}

// lookalike is an error when an unknown variable is probably a mistyped one.
func lookalike(variable string) error {
	guess := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, envPrefix), "_", "."))
	nearest := config.Nearest(config.ScopeNode, guess)
	if rest, ok := strings.CutPrefix(guess, "kafka."); ok {
		if near := config.Nearest(config.ScopeBroker, rest); near != "" {
			nearest = "kafka." + near
		}
	}
	if nearest == "" {
		return nil
	}
	return &config.UnknownError{Key: variable, Nearest: EnvName(nearest), Where: "environment variable"}
}

// EnvName is the environment variable of a setting: node.id is STRANDLINE_NODE_ID.
func EnvName(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// settingNames returns the reverse of a spelling of setting names.
func settingNames(spell func(string) string) func(string) (string, bool) {
	known := map[string]string{}
	for _, s := range config.All(config.ScopeNode) {
		known[spell(s.Name)] = s.Name
	}
	for _, s := range config.All(config.ScopeBroker) {
		known[spell("kafka."+s.Name)] = "kafka." + s.Name
	}
	for i := range config.ListenersMax {
		for _, key := range config.ListenerKeys() {
			name := "listeners." + strconv.Itoa(i) + "." + key
			known[spell(name)] = name
		}
	}
	return func(spelled string) (string, bool) {
		name, ok := known[spelled]
		return name, ok
	}
}

// origins lists every setting with its value and source, in name order: node settings, listeners, then broker settings.
func origins(l layer, dev bool) []Origin {
	var out []Origin
	add := func(name string, s *config.Setting) {
		o := Origin{Name: name, Value: s.DefaultFor(dev), From: "default"}
		if dev && s.DevDefault != nil {
			o.From = "dev default"
		}
		if from, ok := l.from[name]; ok {
			o.Value, o.From = l.values[name], from
		}
		if s.Secret {
			o.Value = "(secret)"
		}
		out = append(out, o)
	}
	for _, s := range config.All(config.ScopeNode) {
		add(s.Name, s)
	}
	for _, name := range slices.Sorted(maps.Keys(l.values)) {
		if s, err := config.Find(name); err == nil && strings.HasPrefix(name, "listeners.") {
			add(name, s)
		}
	}
	for _, s := range config.All(config.ScopeBroker) {
		add("kafka."+s.Name, s)
	}
	return out
}
