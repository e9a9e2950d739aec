package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"strandline.dev/internal/config/load"
)

func newConfigCommand(a *app) *cobra.Command {
	return newGroupCommand("config", "Show the configuration of a node",
		"Show the configuration that a node would start with, without starting it.", newConfigPrintCommand(a))
}

// configPrinting are the flags of `config print`.
type configPrinting struct {
	file                   string
	effective, origin, dev bool
}

func newConfigPrintCommand(a *app) *cobra.Command {
	var f configPrinting
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the settings of a node and where each comes from",
		Long: `Print the settings that serve (or, with --dev, dev) would start with, given the same file, environment and flags: what was set, or
with --effective everything. --origin adds where each value comes from. Secrets are never printed. A wrong file is reported as serve
would report it, with exit code 1.`,
		Example: `  strandline config print --config strandline.yaml --effective --origin
  STRANDLINE_NODE_ID=3 strandline config print --origin
  strandline config print --dev --effective -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.configPrint(cmd, f) },
	}
	cmd.Flags().StringVar(&f.file, "config", "", "configuration file (YAML)")
	cmd.Flags().BoolVar(&f.effective, "effective", false, "also print settings that keep their default")
	cmd.Flags().BoolVar(&f.origin, "origin", false, "print where each value comes from")
	cmd.Flags().BoolVar(&f.dev, "dev", false, "start from the defaults of dev instead of those of serve")
	addSettingFlags(cmd.Flags())
	return cmd
}

// printedSetting is one line of `config print -o json`.
type printedSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin,omitempty"`
}

func (a *app) configPrint(cmd *cobra.Command, f configPrinting) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	var text []byte
	if f.file != "" {
		if text, err = readConfig(f.file); err != nil {
			return &failure{what: "cannot read the configuration", why: err}
		}
	}
	from := load.Load
	if f.dev {
		from = load.LoadDev
	}
	node, origins, err := from(text, os.Environ(), givenSettings(cmd.Flags()))
	if err == nil {
		err = node.Validate()
	}
	if err != nil {
		return &failure{what: "the configuration is wrong", why: err}
	}
	return a.printer(s).printSettings(origins, f)
}

func (p printer) printSettings(origins []load.Origin, f configPrinting) error {
	var rows [][]string
	for _, o := range origins {
		if !f.effective && strings.HasSuffix(o.From, "default") {
			continue
		}
		line := printedSetting{Name: o.Name, Value: o.Value}
		if f.origin {
			line.Origin = o.From
		}
		if p.json {
			if err := p.object(line); err != nil {
				return err
			}
			continue
		}
		row := []string{line.Name, line.Value}
		if f.origin {
			row = append(row, line.Origin)
		}
		rows = append(rows, row)
	}
	heading := []string{"SETTING", "VALUE"}
	if f.origin {
		heading = append(heading, "ORIGIN")
	}
	return p.table(heading, rows)
}
