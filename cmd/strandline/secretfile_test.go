package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline.dev/internal/config"
)

// secretNames is what a flag would be called that takes a secret, and fileNames what the description of one says that takes a file with secrets.
var (
	secretNames = regexp.MustCompile(`(?i)passw|secret|token|credential|passphrase|keyring|(^|[-.])key($|[-.])`)
	fileNames   = regexp.MustCompile(`(?i)\bfile\b`)
)

// notSecret are the flags that are called like a secret and take none.
var notSecret = []string{
	"strandline produce --key",
}

// TestSecurity11_NoSecretOnACommandLine: no flag of any command takes a secret as its value, and -X takes no password: other users of a machine see its
// command lines. No setting of a node is a secret, so that none is a flag, a variable of the environment, or printed by config print.
func TestSecurity11_NoSecretOnACommandLine(t *testing.T) {
	unused := slices.Clone(notSecret)
	eachCommand(newRootCommand(newApp()), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name := cmd.CommandPath() + " --" + f.Name
			if f.Value.Type() == "bool" || !secretNames.MatchString(f.Name) || fileNames.MatchString(f.Usage) {
				return
			}
			if !slices.Contains(notSecret, name) {
				t.Errorf("%s takes a secret: %s", name, f.Usage)
			}
			unused = slices.DeleteFunc(unused, func(n string) bool { return n == name })
		})
	})
	if len(unused) > 0 {
		t.Errorf("there are no such flags: %q", unused)
	}
	for _, args := range [][]string{
		{"topic", "list", "-X", "password=open-sesame"}, {"topic", "list", "--http", "https://admin:open-sesame@127.0.0.1:1"},
		{"topic", "list", "-X", "http=https://admin:open-sesame@127.0.0.1:1"},
	} {
		if code, out, errOut := command(t, "", args...); code != 2 || !strings.Contains(errOut, "can see a command line") || strings.Contains(out+errOut, "open-sesame") {
			t.Errorf("%q: exit %d, %s%s", args, code, out, errOut)
		}
	}
	for _, scope := range []config.Scope{config.ScopeNode, config.ScopeBroker} {
		for _, s := range config.All(scope) {
			if s.Secret || secretNames.MatchString(s.Name) && !fileNames.MatchString(s.Doc) && s.Type == config.String {
				t.Errorf("the setting %s is a secret", s.Name)
			}
		}
	}
}

// TestSecurity11_SecretsOfTheEnvironment: the password of a client is the one secret that is taken from the environment, and that is written down.
func TestSecurity11_SecretsOfTheEnvironment(t *testing.T) {
	var secrets []string
	for _, k := range knobs {
		if secretNames.MatchString(k.name) && k.name != "tls.key" { // which is a file
			secrets = append(secrets, k.env)
		}
	}
	if !slices.Equal(secrets, []string{"STRANDLINE_CLIENT_PASSWORD"}) {
		t.Errorf("secrets of the environment: %q", secrets)
	}
	page, err := os.ReadFile("../../docs/operating/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "`STRANDLINE_CLIENT_PASSWORD`") {
		t.Error("docs/operating/security.md does not say which variable has a secret")
	}
}

// TestSecurity11_ModesOfSecretFiles: what makes a file with a secret makes it for its owner alone, and one that others may read is told of, with the mode
// it has, the one it is to have, and the command that gives it.
func TestSecurity11_ModesOfSecretFiles(t *testing.T) {
	dir := t.TempDir()
	ring := filepath.Join(dir, "ring")
	for _, args := range [][]string{{"keyring", "create", ring, "first"}, {"keyring", "add", ring, "second"}} {
		_ = os.Chmod(ring, 0o644) // there is none at first
		if code, _, errOut := command(t, "", args...); code != 0 {
			t.Fatal(errOut)
		}
		if st, err := os.Stat(ring); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%q: %v %v", args, st, err)
		}
	}
	for mode, lax := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: false, 0o440: false, 0o644: true, 0o604: true, 0o660: true, 0o606: true, 0o777: true} {
		if err := os.Chmod(ring, mode); err != nil {
			t.Fatal(err)
		}
		want := ""
		if lax {
			want = fmt.Sprintf("%s has mode %04o, so other users of this machine can read or change it; want 0600: chmod 600 %s", ring, mode, ring)
		}
		if got := laxMode(ring); got != want {
			t.Errorf("mode %04o: %q, want %q", mode, got, want)
		}
	}
	if err := os.Chmod(ring, 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	c := config.Node{}
	c.Encryption.Keyring, c.TLS.Key, c.TLS.Cluster.Key, c.Auth.UsersFile = ring, ring, ring, ring
	warnOfModes(slog.New(slog.NewTextHandler(&log, nil)), c)
	for _, setting := range []string{"encryption.keyring", "tls.key", "tls.cluster.key", "auth.users.file"} {
		if !strings.Contains(log.String(), "setting="+setting+" ") {
			t.Errorf("nothing is said of %s: %s", setting, log.String())
		}
	}
}

// TestSecurity11_ModeOfAProfile: a profile with a password that others may read is told of once; one without a password may be read.
func TestSecurity11_ModeOfAProfile(t *testing.T) {
	for text, want := range map[string]int{
		"default: a\nprofiles: {a: {brokers: \"127.0.0.1:1\", timeout: 1s}}\n":                                 0,
		"default: a\nprofiles: {a: {brokers: \"127.0.0.1:1\", timeout: 1s, user: x, password: open-sesame}}\n": 1,
	} {
		profile := filepath.Join(t.TempDir(), "profiles.yaml")
		if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, out, errOut := command(t, "", "topic", "list", "--profile", profile)
		if strings.Count(errOut, "note: "+profile+" has mode 0644") != want || strings.Contains(out+errOut, "open-sesame") {
			t.Errorf("%s%s", out, errOut)
		}
	}
}

// TestSecurity11_NoProfilerIsLinkedIn: no package in this program adds pages that show memory, stacks or requests to the handler that net/http shares
// between packages. Nobody serves that handler either: expvar, which a library brings, is not to be had at the HTTP port (H22 of TestHostileHTTP).
func TestSecurity11_NoProfilerIsLinkedIn(t *testing.T) {
	for _, page := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile", "/debug/requests", "/debug/events", "/"} {
		w := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, page, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %.100s", page, w.Code, w.Body)
		}
	}
}
