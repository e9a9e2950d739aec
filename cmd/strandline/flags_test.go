package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline.dev/internal/config"
)

// valueNames is what the help may call the value of a flag: one word, or a choice of them.
var valueNames = regexp.MustCompile(`^(string|strings|int|duration|position|URL|NAME|USER|OPERATION|RESOURCE|HOST|HOST,\.\.\.|PORT|KEY|ID|DIR|N|N,\.\.\.|GROUP|FORMAT|TOPIC|NUMBER|DURATION|LIST|TEXT|BYTES|PART|FACTOR|PRICE|HOST:PORT|host:port,\.\.\.|key=value|name=value|[A-Za-z0-9.-]+(\|[A-Za-z0-9.-]+)+)$`)

// TestEveryFlagNamesItsValue: pflag takes the first back-quoted words of a flag's description for the name of its value, so a command that
// is quoted there turns up as one. A switch has no value at all.
func TestEveryFlagNamesItsValue(t *testing.T) {
	eachCommand(newRootCommand(newApp()), func(cmd *cobra.Command) {
		check := func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			isSwitch := f.Value.Type() == "bool"
			if isSwitch != (name == "") || !isSwitch && !valueNames.MatchString(name) {
				t.Errorf("%s --%s: its value is called %q (%s)", cmd.CommandPath(), f.Name, name, usage)
			}
			if strings.Contains(usage, "`") || usage == "" {
				t.Errorf("%s --%s: description %q", cmd.CommandPath(), f.Name, usage)
			}
		}
		cmd.LocalFlags().VisitAll(check)
	})
}

// TestEverySettingIsAFlag: what the file can say, a flag of serve and of config print can say.
func TestEverySettingIsAFlag(t *testing.T) {
	root := newRootCommand(newApp())
	for _, path := range [][]string{{"serve"}, {"config", "print"}} {
		cmd, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		var missing []string
		for _, s := range config.All(config.ScopeNode) {
			if cmd.Flags().Lookup(flagName(s.Name)) == nil {
				missing = append(missing, s.Name)
			}
		}
		for _, s := range config.All(config.ScopeBroker) {
			if cmd.Flags().Lookup(flagName("kafka."+s.Name)) == nil {
				missing = append(missing, s.Name)
			}
		}
		for _, key := range config.ListenerKeys() {
			if cmd.Flags().Lookup("listeners-3-"+key) == nil {
				missing = append(missing, key)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s has no flag for %q", cmd.CommandPath(), missing)
		}
	}
	cmd, _, _ := root.Find([]string{"serve"})
	if err := cmd.ParseFlags([]string{"--kafka-num-partitions", "5", "--listeners-0-address", "127.0.0.1:1", "--node-id", "2"}); err != nil {
		t.Fatal(err)
	}
	given := givenSettings(cmd.Flags())
	if len(given) != 3 || given["kafka.num.partitions"] != "5" || given["listeners.0.address"] != "127.0.0.1:1" || given["node.id"] != "2" {
		t.Errorf("%v", given)
	}
}
