// Command strandline is the whole product in one binary: the broker (dev, serve), its command line (topic, produce, consume,
// bench, log, config, version) and the demonstration of what it promises (demo).
//
// Knows: how a person talks to a broker: flags, profiles, formats, exit codes, the sentence an error becomes. Does not know: how
// a broker works; every client subcommand speaks the Kafka protocol through franz-go, as any other client would, so that nothing
// here depends on which broker answers.
//
// Invariants:
//   - Exit codes: 0 done; 1 the operation failed, in part or whole, with one line on stderr that says what failed, why, and what to
//     do; 2 wrong usage. An error never prints a stack.
//   - Precedence of a setting: flag > environment > profile file > default.
//   - Results go to stdout and nothing else does; everything for people only (progress, warnings, errors) goes to stderr.
//   - Bytes pass through unchanged: null is not empty, headers keep order and repeats, `consume --json | produce --json` copies a
//     topic byte for byte.
//   - Every wait on a broker is bounded by --timeout, except that of a consumer which follows a topic.
//
// Concurrency: one goroutine per command; produce hands results to the printer through a bounded queue (limits.go); bench and demo
// start the goroutines their files name and wait for all of them.
//
// Files: main.go (root command, exit codes), errors.go (what an error says), settings.go (precedence, profiles), client.go (the
// connection to a broker), output.go (tables, JSON lines, prompts), progress.go, topic*.go, acl*.go, user.go, quota.go, init.go (a locked-down cluster), produce*.go, consume*.go, position.go (the -o
// grammar of consume), format.go (the -f grammar), recordjson.go (records as JSON), bench*.go with
// histogram.go, machine.go, metrics.go, pace_*.go and usage_*.go, plan*.go (the estimate and what a cluster shows), doctor*.go, log.go, config.go, version.go,
// demo*.go, dev.go, temporary.go and serve.go (the broker), flags.go (a flag for each setting; what a wrong flag is told),
// startfailure.go.
package main
