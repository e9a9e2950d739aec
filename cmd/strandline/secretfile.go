package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"runtime"

	"strandline.dev/internal/config"
)

const (
	// secretMode is the mode of a file with a secret.
	secretMode os.FileMode = 0o600
	// laxBits are those that let others at it. That a group may read it is let pass: packages give a service its key by one.
	laxBits os.FileMode = 0o037
)

// laxMode says that others may read or change a file with a secret, and the command that mends it; "" if they may not. Files that are not there are told
// of by who needs them.
func laxMode(path string) string {
	st, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || st.Mode().Perm()&laxBits == 0 {
		return ""
	}
	return fmt.Sprintf("%s has mode %04o, so other users of this machine can read or change it; want %04o: chmod %o %s",
		path, st.Mode().Perm(), secretMode, secretMode, shellWord(path))
}

// warnOfModes tells of a node's secret files that others may read. It is no reason not to start: what a container or a secret store puts in place
// often has a mode of its own, in a directory that nobody else sees.
func warnOfModes(log *slog.Logger, c config.Node) {
	for _, f := range []struct{ setting, path string }{
		{"encryption.keyring", c.Encryption.Keyring}, {"tls.key", c.TLS.Key}, {"tls.cluster.key", c.TLS.Cluster.Key}, {"auth.users.file", c.Auth.UsersFile},
	} {
		if f.path == "" {
			continue
		}
		if why := laxMode(f.path); why != "" {
			log.Warn("a secret is open to others", "setting", f.setting, "why", why)
		}
	}
}

// noteMode tells a person of a file with a secret that others may read, once.
func (a *app) noteMode(path string) {
	if path == "" || a.noted[path] {
		return
	}
	if why := laxMode(path); why != "" {
		if a.noted == nil {
			a.noted = map[string]bool{}
		}
		a.noted[path] = true
		fmt.Fprintf(a.stderr, "note: %s\n", why)
	}
}

// noSecretInURL refuses an address on the command line with a password in it.
func noSecretInURL(address string) error {
	u, err := url.Parse(address)
	if err != nil { // whose text would show it
		return nil
	}
	if _, secret := u.User.Password(); secret {
		return usagef("--http: other users of this machine can see a command line; give an address with a password in STRANDLINE_HTTP or in a profile")
	}
	return nil
}
