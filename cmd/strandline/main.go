package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	os.Exit(run(os.Args[1:], newApp()))
}

// app is what every subcommand shares: the process's streams and the settings of this run.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool) // the environment
	configDir      func() (string, error)      // where the profile file lives
	given          givenFlags
	ran            bool            // the command line was understood (exitCode)
	noted          map[string]bool // files that noteMode has told of
}

func newApp() *app {
	return &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv, configDir: os.UserConfigDir}
}

// run executes one command line and returns the exit code. The first SIGINT or SIGTERM cancels the command's context, so that it
// can finish cleanly; the second one ends the process at once.
func run(args []string, a *app) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	code := exitCode(err, a.ran)
	report(a.stderr, err, code, cmd.CommandPath())
	return code
}

const rootLong = `Strandline is a durable message broker that speaks the Apache Kafka protocol, in one binary.

Every client command finds the broker by --brokers, the environment variable STRANDLINE_BROKERS, or the profile file
(strandline/profiles.yaml in your configuration directory), in that order, and else tries 127.0.0.1:9092.

Exit codes: 0 done; 1 the operation failed, in part or whole (one line on stderr says what, why, and what to do); 2 wrong usage.`

const rootExample = `  strandline dev                                   # a broker for development, on 127.0.0.1:9092
  strandline topic create orders -p 8
  echo '{"order":42}' | strandline produce orders -k order-42
  strandline consume orders -o start -e -f '%k %v\n'
  strandline demo                                  # the whole story, checked, on a throw-away broker`

// newRootCommand builds the whole command tree. It must stay cheap: it runs at every start, `topic list` included.
func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "strandline",
		Short:         "A durable, Kafka-compatible message broker in one binary",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.addGlobalFlags(root)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newDemoCommand(a), newDevCommand(), newServeCommand(),
		newTopicCommand(a), newProduceCommand(a), newConsumeCommand(a), newConsumerGroupCommand(a),
		newClusterCommand(a), newNodeCommand(a), newPartitionCommand(a), newPlanCommand(a), newDoctorCommand(a), newBenchCommand(a), newLogCommand(a), newKeyringCommand(a), newConfigCommand(a), newVersionCommand(a),
		newInitCommand(a), newAuditCommand(a), newACLCommand(a), newUserCommand(a), newQuotaCommand(a), newManCommand(),
	)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	describeOwn(root)
	markRun(root, a)
	return root
}

// describeOwn adds to cobra's own commands what a person needs to see first, and refuses what they do not know: a shell would source the help.
func describeOwn(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil {
					return usagef("%v", err)
				}
				return noSuchCommand(about, rest)
			}
		case "completion":
			cmd.Args = noSuchCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.Short = "Print a completion script for bash, zsh, fish or powershell"
			cmd.Example = `  source <(strandline completion bash)          # this shell; see strandline completion bash --help for every shell
  strandline completion zsh > "${fpath[1]}/_strandline"
  strandline completion fish | source
  strandline completion powershell | Out-String | Invoke-Expression`
		}
	}
}

// nameless refuses a list that was given and is empty or has an empty element, as a shell makes it of a variable that is not set: without the list most
// commands take everything.
func nameless(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok && !strings.HasSuffix(f.Value.Type(), "Array") {
			if values := list.GetSlice(); len(values) == 0 || slices.Contains(values, "") {
				err = usagef("--%s: an empty name", f.Name)
			}
		}
	})
	return err
}

// markRun wraps every RunE so that exitCode can tell a refused command line (2) from a failed operation (1).
func markRun(cmd *cobra.Command, a *app) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			if err := nameless(c.Flags()); err != nil {
				return err
			}
			a.ran = true
			return inner(c, args)
		}
	}
	for _, sub := range cmd.Commands() {
		markRun(sub, a)
	}
}

// newGroupCommand makes a command that only holds subcommands: on its own it prints its help, with anything unknown it is refused.
func newGroupCommand(use, short, long string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subs...)
	return cmd
}

// noSuchCommand refuses arguments of a command that only holds subcommands, and names the nearest one.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // a letter or two wrong
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("unknown command %q for %q, did you mean %q?", args[0], cmd.CommandPath(), near[0])
	}
	return usagef("unknown command %q for %q", args[0], cmd.CommandPath())
}

// exactArgs takes the arguments that use names, and says which is missing.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef("missing %s", names[len(args)])
		}
		if len(args) > len(names) {
			return usagef("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// atLeastArgs takes the arguments that names names, and any number of further ones.
func atLeastArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef("missing %s", names[len(args)])
		}
		return nil
	}
}
