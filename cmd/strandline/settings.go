package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.yaml.in/yaml/v3"
)

// givenFlags are the global flags as typed; "" means not given.
type givenFlags struct {
	brokers, http, profile, output string
	overrides                      []string
	noHeader, yes                  bool
}

// settings is what the global flags, the environment and the profile file come to.
type settings struct {
	brokers  []string
	http     string
	json     bool
	noHeader bool
	yes      bool
	timeout  time.Duration
	clientID string
	// security are the options by which brokers and client prove to each other who they are.
	security []kgo.Opt
	// tls says that the brokers are spoken to over TLS.
	tls bool
	// httpGiven says that a person named the HTTP address: only then does a command look there uninvited.
	httpGiven bool
}

// knob is one client setting: its name in -X and in a profile, its environment variable, its default.
type knob struct{ name, env, fallback string }

var knobs = append([]knob{
	{"brokers", "STRANDLINE_BROKERS", "127.0.0.1:9092"},
	{"http", "STRANDLINE_HTTP", "http://127.0.0.1:8080"},
	{"output", "STRANDLINE_OUTPUT", "text"},
	{"timeout", "STRANDLINE_TIMEOUT", timeoutDefault.String()},
	{"client.id", "STRANDLINE_CLIENT_ID", "strandline"},
}, securityKnobs...)

func (a *app) addGlobalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	g := &a.given
	f.StringVar(&g.brokers, "brokers", "", "brokers to start from, `host:port,...` (env STRANDLINE_BROKERS, default 127.0.0.1:9092)")
	f.StringVar(&g.http, "http", "", "HTTP address of a broker, `URL` (env STRANDLINE_HTTP, default http://127.0.0.1:8080)")
	f.StringVar(&g.profile, "profile", "", "profile `NAME` of the profile file, or a file of profiles by its path, with a / in it (env STRANDLINE_PROFILE, default: the \"default\" entry)")
	f.StringArrayVarP(&g.overrides, "set", "X", nil, "client setting `key=value`: brokers, http, output, timeout, client.id, tls, tls.ca, tls.cert, tls.key, sasl.mechanism, user (repeatable); a password is given in STRANDLINE_CLIENT_PASSWORD or a profile")
	f.StringVarP(&g.output, "output", "o", "", "`text|json`: a table, or one JSON object a line (env STRANDLINE_OUTPUT, default text)")
	f.BoolVar(&g.noHeader, "no-header", false, "leave out the heading line of tables")
	f.BoolVarP(&g.yes, "yes", "y", false, "answer yes to every question")
}

// settings resolves every setting by precedence: flag, -X, environment, profile file, default.
func (a *app) settings() (settings, error) {
	overrides, err := parseOverrides(a.given.overrides)
	if err != nil {
		return settings{}, err
	}
	profile, err := a.loadProfile()
	if err != nil {
		return settings{}, err
	}
	typed := map[string]string{"brokers": a.given.brokers, "http": a.given.http, "output": a.given.output}
	if err := noSecretInURL(cmp.Or(typed["http"], overrides["http"])); err != nil {
		return settings{}, err
	}
	value := make(map[string]string, len(knobs))
	fromPerson := make(map[string]bool, len(knobs))
	for _, k := range knobs {
		env, _ := a.lookup(k.env)
		v := cmp.Or(typed[k.name], overrides[k.name], env, profile[k.name])
		fromPerson[k.name] = v != ""
		value[k.name] = cmp.Or(v, k.fallback)
	}
	s := settings{
		http: strings.TrimRight(value["http"], "/"), httpGiven: fromPerson["http"],
		clientID: value["client.id"], noHeader: a.given.noHeader, yes: a.given.yes,
	}
	if s.json, err = parseOutput(value["output"]); err != nil {
		return settings{}, err
	}
	if s.timeout, err = time.ParseDuration(value["timeout"]); err != nil || s.timeout <= 0 {
		return settings{}, usagef("timeout %q: want a positive duration such as 10s", value["timeout"])
	}
	if s.security, err = securityOptions(value); err != nil {
		return settings{}, err
	}
	a.noteMode(value["tls.key"])
	s.tls = value["tls"] == "true"
	s.brokers, err = parseBrokers(value["brokers"])
	return s, err
}

// parseOutput reads the value of -o and says whether it asks for JSON.
func parseOutput(v string) (bool, error) {
	switch v {
	case "json":
		return true, nil
	case "text":
		return false, nil
	}
	return false, usagef("output %q: want text or json", v)
}

// parseBrokers splits host:port,... and adds the port 9092 where none is given.
func parseBrokers(list string) ([]string, error) {
	var brokers []string
	for b := range strings.SplitSeq(list, ",") {
		b = strings.TrimSpace(b)
		if b == "" {
			continue
		}
		host, port, err := net.SplitHostPort(b)
		if err != nil {
			host, port = strings.Trim(b, "[]"), "9092"
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strings.ContainsAny(host, "/ ") {
			return nil, usagef("broker %q: want host:port", b)
		}
		brokers = append(brokers, net.JoinHostPort(host, port))
	}
	if len(brokers) == 0 {
		return nil, usagef("brokers %q: want host:port,...", list)
	}
	return brokers, nil
}

// parseOverrides reads the -X flags; a later one wins.
func parseOverrides(pairs []string) (map[string]string, error) {
	values := make(map[string]string, len(pairs))
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok {
			return nil, usagef("-X %q: want key=value", p)
		}
		if err := checkKnob(k); err != nil {
			return nil, usagef("-X: %w", err)
		}
		if k == "password" {
			return nil, usagef("-X password: other users of this machine can see a command line; give it in STRANDLINE_CLIENT_PASSWORD or in a profile")
		}
		values[k] = v
	}
	return values, nil
}

func checkKnob(name string) error {
	if slices.ContainsFunc(knobs, func(k knob) bool { return k.name == name }) {
		return nil
	}
	names := make([]string, len(knobs))
	for i, k := range knobs {
		names[i] = k.name
	}
	return fmt.Errorf("unknown client setting %q (known: %s)", name, strings.Join(names, ", "))
}

// profileFile is the file of named client settings:
//
//	default: local
//	profiles:
//	  local: {brokers: "127.0.0.1:9092"}
//	  prod:  {brokers: "a:9092,b:9092", timeout: 30s}
type profileFile struct {
	Default  string                       `yaml:"default"`
	Profiles map[string]map[string]string `yaml:"profiles"`
}

// loadProfile returns the settings of the chosen profile, nil when there is no profile file and none was asked for.
func (a *app) loadProfile() (map[string]string, error) {
	env, _ := a.lookup("STRANDLINE_PROFILE")
	wanted := cmp.Or(a.given.profile, env)
	name, err := a.profilePath(&wanted)
	if name == "" || err != nil {
		return nil, err
	}
	file, err := readProfileFile(name)
	if errors.Is(err, fs.ErrNotExist) && wanted == "" && !isPath(cmp.Or(a.given.profile, env)) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("profile %q: there is no profile file %s", cmp.Or(a.given.profile, env), name)
	}
	if err != nil {
		return nil, usagef("profile file %s: %w", name, err)
	}
	wanted = cmp.Or(wanted, file.Default)
	if wanted == "" {
		return nil, nil
	}
	profile, ok := file.Profiles[wanted]
	if !ok {
		return nil, usagef("profile %q is not in %s", wanted, name)
	}
	for key := range profile {
		if err := checkKnob(key); err != nil {
			return nil, usagef("profile %q in %s: %w", wanted, name, err)
		}
	}
	if profile["password"] != "" {
		a.noteMode(name)
	}
	return profile, nil
}

// isPath says that a profile is given as a file.
func isPath(profile string) bool {
	return strings.ContainsRune(profile, '/') || strings.ContainsRune(profile, filepath.Separator)
}

// profilePath is the file of profiles, "" when there can be none and none was asked for. Of a file that is given by its path the default profile counts.
func (a *app) profilePath(wanted *string) (string, error) {
	if path := *wanted; isPath(path) {
		*wanted = ""
		return path, nil
	}
	dir, err := a.configDir()
	switch {
	case err == nil:
		return filepath.Join(dir, "strandline", "profiles.yaml"), nil
	case *wanted == "":
		return "", nil
	}
	return "", usagef("profile %q: no configuration directory: %w", *wanted, err)
}

func readProfileFile(name string) (profileFile, error) {
	var file profileFile
	f, err := os.Open(name)
	if err != nil {
		return file, err
	}
	defer f.Close()
	d := yaml.NewDecoder(io.LimitReader(f, profileBytesMax))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return file, err
	}
	return file, nil
}
