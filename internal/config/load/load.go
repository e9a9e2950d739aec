// Package load reads settings from a file, the environment and flags, and says where each value came from.
//
// Knows: YAML, the names of environment variables (STRANDLINE_ and the setting's name in capitals, dots as underscores), and the
// precedence flag > environment > file > default. Does not know: how a file is found or opened, or what a setting means.
//
// Invariants: an unknown key is an error that names the nearest known one; a value is checked before it is used.
//
// Concurrency: pure functions.
//
// Files: load.go (precedence and origin), yaml.go (the file), limits.go.
package load

import "strandline.dev/internal/config"

// Origin says where the value of one setting came from.
type Origin struct {
	Name  string
	Value string // as text; "(secret)" for a secret
	// From is "default", "dev default", "file line N", "env NAME" or "flag --name".
	From string
}

// Load merges the sources onto the defaults of `serve`. Flags are keyed by setting name ("node.id") or flag name ("node-id").
func Load(file []byte, env []string, flags map[string]string) (config.Node, []Origin, error) {
	return config.Node{}, nil, nil
}

// LoadDev is Load onto the defaults of `dev`.
func LoadDev(file []byte, env []string, flags map[string]string) (config.Node, []Origin, error) {
	return config.Node{}, nil, nil
}
