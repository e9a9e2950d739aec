package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newTestApp is an app with its own environment and, if profiles is not "", a profile file.
func newTestApp(t *testing.T, env map[string]string, profiles string) *app {
	t.Helper()
	dir := t.TempDir()
	if profiles != "" {
		if err := os.MkdirAll(filepath.Join(dir, "strandline"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "strandline", "profiles.yaml"), []byte(profiles), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := newApp()
	a.lookup = func(k string) (string, bool) { v, ok := env[k]; return v, ok }
	a.configDir = func() (string, error) { return dir, nil }
	return a
}

// TestSettingPrecedence: flag > -X > environment > profile file > default.
func TestSettingPrecedence(t *testing.T) {
	const profiles = "default: local\nprofiles:\n  local: {brokers: 'profile:1', timeout: 3s}\n  other: {brokers: 'other:1'}\n"
	env := map[string]string{"STRANDLINE_BROKERS": "env:1"}
	for _, c := range []struct {
		name, profiles string
		env            map[string]string
		given          givenFlags
		want           string
	}{
		{"default", "", nil, givenFlags{}, "127.0.0.1:9092"},
		{"profile file", profiles, nil, givenFlags{}, "profile:1"},
		{"named profile", profiles, nil, givenFlags{profile: "other"}, "other:1"},
		{"profile by environment", profiles, map[string]string{"STRANDLINE_PROFILE": "other"}, givenFlags{}, "other:1"},
		{"environment", profiles, env, givenFlags{}, "env:1"},
		{"-X", profiles, env, givenFlags{overrides: []string{"brokers=lost:1", "brokers=x:1"}}, "x:1"},
		{"flag", profiles, env, givenFlags{brokers: "flag:1,other", overrides: []string{"brokers=x:1"}}, "flag:1,other:9092"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newTestApp(t, c.env, c.profiles)
			a.given = c.given
			s, err := a.settings()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.brokers, ","); got != c.want {
				t.Errorf("brokers %s, want %s", got, c.want)
			}
			if s.httpGiven {
				t.Error("nobody gave --http")
			}
		})
	}
}

func TestWrongSettingsAreUsageErrors(t *testing.T) {
	for name, c := range map[string]struct {
		profiles string
		given    givenFlags
	}{
		"unknown -X key":      {"", givenFlags{overrides: []string{"broker=x"}}},
		"-X without value":    {"", givenFlags{overrides: []string{"brokers"}}},
		"output":              {"", givenFlags{output: "yaml"}},
		"timeout":             {"", givenFlags{overrides: []string{"timeout=-1s"}}},
		"port":                {"", givenFlags{brokers: "host:x"}},
		"URL for a broker":    {"", givenFlags{brokers: "http://host"}},
		"no broker":           {"", givenFlags{brokers: ","}},
		"no profile file":     {"", givenFlags{profile: "p"}},
		"no such profile":     {"profiles: {a: {}}", givenFlags{profile: "p"}},
		"unknown profile key": {"profiles: {p: {broker: x}}", givenFlags{profile: "p"}},
		"unknown file key":    {"profile: {}", givenFlags{}},
	} {
		a := newTestApp(t, nil, c.profiles)
		a.given = c.given
		_, err := a.settings()
		if exitCode(err, true) != 2 {
			t.Errorf("%s: %v, want a usage error", name, err)
		}
	}
}

func TestParseBrokers(t *testing.T) {
	got, err := parseBrokers(" a , b:1,[::1]:2,::1 ")
	want := []string{"a:9092", "b:1", "[::1]:2", "[::1]:9092"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	err := failf(errors.New("first\nsecond\r\nthird"), "cannot %s", "do it")
	if s := err.Error(); s != "cannot do it: first; second; third" {
		t.Errorf("%q", s)
	}
	var b strings.Builder
	report(&b, err, 1, "strandline topic")
	report(&b, errPartial, 1, "strandline topic")
	report(&b, usagef("what"), 2, "strandline topic list")
	if b.String() != "strandline: cannot do it: first; second; third\nstrandline: what; see `strandline topic list --help`\n" {
		t.Errorf("%q", b.String())
	}
}
