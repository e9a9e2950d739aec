package main

import (
	"net"
	"os"

	"github.com/spf13/cobra"

	"strandline.dev/internal/config/load"
)

const devLong = `Runs one full node on loopback for development: plaintext, topics created on first use, flush policy "replicated"
(kill -9 loses nothing, a power cut may), no minimum retention.

Without --data-dir the data goes to a temporary directory that is removed at exit. One line on stdout says when the node accepts work.`

const devExample = `  strandline dev
  strandline dev --data-dir ./data --kafka 127.0.0.1:19092 --http 127.0.0.1:0`

// newDevCommand makes `dev`.
func newDevCommand() *cobra.Command {
	var dataDir, kafkaAddr, httpAddr, logLevel string
	cmd := &cobra.Command{
		Use: "dev", Short: "Run one node for development", Long: devLong, Example: devExample,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for flag, addr := range map[string]string{"--kafka": kafkaAddr, "--http": httpAddr} {
				if _, _, err := net.SplitHostPort(addr); err != nil {
					return usagef("%s %q: want HOST:PORT", flag, addr)
				}
			}
			cleanUp := func() {}
			if dataDir == "" {
				dir, err := os.MkdirTemp("", "strandline-dev-")
				if err != nil {
					return &failure{what: "no temporary directory", why: err, todo: "give one with --data-dir"}
				}
				dataDir, cleanUp = dir, func() { _ = os.RemoveAll(dir) }
			}
			defer cleanUp()
			cfg, _, err := load.LoadDev(nil, os.Environ(), map[string]string{"data.dir": dataDir, "http.address": httpAddr, "log.level": logLevel})
			if err != nil {
				return usagef("%w", err)
			}
			cfg.Listeners[0].Address = kafkaAddr
			if err := cfg.Validate(); err != nil {
				return usagef("%w", err)
			}
			return runNode(cmd.Context(), cfg, true, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "directory for the data, kept at exit (default: a temporary one, removed at exit)")
	cmd.Flags().StringVar(&kafkaAddr, "kafka", "127.0.0.1:9092", "address for Kafka clients; port 0 takes a free one")
	cmd.Flags().StringVar(&httpAddr, "http", "127.0.0.1:8080", "address for health and metrics; port 0 takes a free one")
	cmd.Flags().StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}
