package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline.dev/internal/config"
	"strandline.dev/internal/config/load"
)

const serveLong = `Runs one production node from a configuration file. Every scalar key of the file is also a flag (node.id = --node-id) and an
environment variable (STRANDLINE_NODE_ID); a flag beats the environment, which beats the file.

This release has no TLS and no authentication, so serve refuses an address that other machines can reach unless --insecure is given.
One line on stdout says when the node accepts work. SIGTERM stops it gracefully.`

const serveExample = `  strandline serve --config strandline.yaml
  strandline serve --node-id 1 --data-dir /var/lib/strandline --http-address 127.0.0.1:8080`

// configBytesMax bounds a configuration file; real ones are a few kilobytes.
const configBytesMax = 1 << 20

// newServeCommand makes `serve`.
func newServeCommand() *cobra.Command {
	var file string
	var insecure bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Run one production node", Long: serveLong, Example: serveExample,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := serveConfig(file, cmd.Flags())
			if err != nil {
				return usageError{err}
			}
			if err := refuseUnsafe(cfg, insecure); err != nil {
				return err
			}
			return runNode(cmd.Context(), cfg, false, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML)")
	cmd.Flags().BoolVar(&insecure, "insecure", false, "accept clients from other machines without TLS and authentication")
	addSettingFlags(cmd.Flags())
	return cmd
}

// addSettingFlags makes a flag of every scalar node setting.
func addSettingFlags(flags *pflag.FlagSet) {
	for _, s := range config.All(config.ScopeNode) {
		flags.String(flagName(s.Name), "", strings.ReplaceAll(s.Doc, "`", "")) // pflag takes a quoted word for the value's name
	}
}

// flagName is the flag of a setting: node.id is --node-id.
func flagName(setting string) string { return strings.ReplaceAll(setting, ".", "-") }

func serveConfig(file string, flags *pflag.FlagSet) (config.Node, error) {
	var text []byte
	if file != "" {
		var err error
		if text, err = readConfig(file); err != nil {
			return config.Node{}, err
		}
	}
	given := map[string]string{}
	for _, s := range config.All(config.ScopeNode) {
		if f := flags.Lookup(flagName(s.Name)); f != nil && f.Changed {
			given[s.Name] = f.Value.String()
		}
	}
	cfg, _, err := load.Load(text, os.Environ(), given)
	if err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

func readConfig(file string) ([]byte, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if st.Size() > configBytesMax {
		return nil, fmt.Errorf("%s: %d bytes, a configuration file has at most %d", file, st.Size(), configBytesMax)
	}
	return os.ReadFile(file)
}

// refuseUnsafe refuses to listen where other machines can reach a node that asks nobody who they are.
func refuseUnsafe(cfg config.Node, insecure bool) error {
	if insecure {
		return nil
	}
	addresses := map[string]string{"http.address": cfg.HTTP.Address}
	for _, l := range cfg.Listeners {
		addresses["listener "+l.Name] = l.Address
	}
	var open []string
	for name, address := range addresses { // sorted below
		if !isLoopback(address) {
			open = append(open, name+" "+address)
		}
	}
	slices.Sort(open)
	if len(open) == 0 {
		return nil
	}
	return &failure{
		what: "refused to listen on " + strings.Join(open, ", "),
		why:  errors.New("other machines can reach it, and this node would serve anyone: it has neither TLS nor authentication"),
		todo: "bind 127.0.0.1, or give --insecure if the network is private",
	}
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
