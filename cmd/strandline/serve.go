package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline.dev/internal/config"
	"strandline.dev/internal/config/load"
)

const serveLong = `Runs one production node from a configuration file. Every scalar key of the file is also a flag (node.id = --node-id) and an
environment variable (STRANDLINE_NODE_ID); a flag beats the environment, which beats the file. Left out of the list below, being many:
the broker settings (kafka.num.partitions = --kafka-num-partitions) and further listeners (--listeners-1-address). docs/reference/config.md
names all.

A cluster of three: three files that list the same cluster.controllers; the first start needs all of them, later ones a majority. Nodes
trust each other by tls.cluster.cert, .key and .ca. An address that other machines can reach is refused, unless it has both TLS and
authentication (tls and sasl of the listener) or --insecure is given. One line on
stdout says when the node accepts work. SIGTERM stops it gracefully.`

const serveExample = `  strandline serve --config strandline.yaml
  strandline serve --node-id 1 --data-dir /var/lib/strandline --listeners-0-name plain --listeners-0-address 127.0.0.1:9092 \
    --http-address 127.0.0.1:8080 --kafka-num-partitions 6`

// configBytesMax bounds a configuration file; real ones are a few kilobytes.
const configBytesMax = 1 << 20

// newServeCommand makes `serve`.
func newServeCommand() *cobra.Command {
	var file string
	var insecure bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Run one production node", Long: serveLong, Example: serveExample,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := serveConfig(file, cmd.Flags())
			if err != nil {
				return usageError{err}
			}
			if err := refuseUnsafe(cfg, insecure); err != nil {
				return err
			}
			return runNode(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML)")
	cmd.Flags().BoolVar(&insecure, "insecure", false, "accept clients from other machines without TLS and authentication")
	addSettingFlags(cmd.Flags())
	return cmd
}

func serveConfig(file string, flags *pflag.FlagSet) (config.Node, error) {
	var text []byte
	if file != "" {
		var err error
		if text, err = readConfig(file); err != nil {
			return config.Node{}, err
		}
	}
	cfg, _, err := load.Load(text, os.Environ(), givenSettings(flags))
	if err != nil {
		return cfg, err
	}
	err = cfg.Validate()
	if cfg.Data.Dir == "" {
		err = errors.Join(err, &config.ValueError{Key: "data.dir", Why: "is not set", Allowed: "a directory for everything the node stores"})
	}
	if err != nil && file == "" && cfg.Node.ID == 0 {
		err = fmt.Errorf("%w; give --config FILE, or at least --node-id N and --data-dir DIR", err)
	}
	return cfg, err
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

// refuseUnsafe refuses to listen where other machines can reach a node that asks nobody who they are, or that passwords cross in the open.
func refuseUnsafe(cfg config.Node, insecure bool) error {
	if insecure {
		return nil
	}
	var open []string
	expose := func(name, address, lacks string) {
		if !isLoopback(address) {
			open = append(open, name+" "+address+" ("+lacks+")")
		}
	}
	if cfg.Cluster.Address != "" && !cfg.HasClusterTLS() {
		expose("cluster.address", cfg.Cluster.Address, "without tls.cluster")
	}
	if cfg.HasHTTP() && !(cfg.HTTP.TLS && (cfg.HTTP.ClientCert == config.CertRequired || cfg.Authenticates())) {
		expose("http.address", cfg.HTTP.Address, "without http.tls, and sasl on a listener or http.mtls: required")
	}
	for _, l := range cfg.Listeners {
		switch {
		case !l.TLS && !l.Authenticates():
			expose("listener "+l.Name, l.Address, "without tls and sasl")
		case !l.TLS:
			expose("listener "+l.Name, l.Address, "without tls: what clients prove themselves with, and records, can be read on the way")
		case !l.Authenticates():
			expose("listener "+l.Name, l.Address, "without sasl or mtls: required")
		}
	}
	if len(open) == 0 {
		return nil
	}
	return &failure{
		what: "refused to listen on " + strings.Join(open, ", "),
		why:  errors.New("other machines can reach it, and it is not protected by both TLS and authentication"),
		todo: "give it tls and sasl, bind 127.0.0.1, or give --insecure if the network is private",
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
