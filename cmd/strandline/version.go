package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"strandline.dev/internal/server"
)

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, and the formats and protocol levels this binary knows",
		Example: `  strandline version
  strandline version -o json | jq .protocol`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}

// buildVersion is `version -o json`.
type buildVersion struct {
	Version     string         `json:"version"`
	Commit      string         `json:"commit,omitempty"`
	Time        string         `json:"time,omitempty"` // of the commit
	Modified    bool           `json:"modified"`       // built from a changed checkout
	Go          string         `json:"go"`
	Platform    string         `json:"platform"`
	RecordBatch int            `json:"recordBatchFormat"`
	Protocol    []protocolSpan `json:"protocol"`
}

// protocolSpan is the range of versions of one Kafka API.
type protocolSpan struct {
	Key  int16  `json:"key"`
	Name string `json:"name"`
	Min  int16  `json:"min"`
	Max  int16  `json:"max"`
}

// recordBatchFormat is the "magic" of the record batches on disk and on the wire; older ones are refused.
const recordBatchFormat = 2

func readBuildVersion() buildVersion {
	v := buildVersion{
		Version: softwareVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, RecordBatch: recordBatchFormat,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.time":
				v.Time = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	for _, api := range server.Served() {
		v.Protocol = append(v.Protocol, protocolSpan{api.Key, api.Name, api.Min, api.Max})
	}
	return v
}

// softwareVersion is the module version of this binary, "devel" when it was built from a checkout without a tag.
func softwareVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

func (a *app) version() error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	v := readBuildVersion()
	p := a.printer(s)
	if p.json {
		return p.object(v)
	}
	commit := cmp.Or(v.Commit, "unknown")
	if v.Time != "" {
		commit += " of " + v.Time
	}
	if v.Modified {
		commit += " (modified)"
	}
	fmt.Fprintf(p.w, "strandline %s\ncommit %s\nbuilt with %s for %s\nrecord batch format v%d\n\n",
		v.Version, commit, v.Go, v.Platform, v.RecordBatch)
	var rows [][]string
	for _, api := range v.Protocol {
		rows = append(rows, []string{fmt.Sprint(api.Key), api.Name, fmt.Sprintf("%d-%d", api.Min, api.Max)})
	}
	return p.table([]string{"KEY", "KAFKA API", "VERSIONS"}, rows)
}
