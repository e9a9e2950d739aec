package config

import (
	"fmt"
	"strings"
)

// Reference returns docs/reference/config.md: every setting of the table. A test keeps the file equal to it.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration reference

Made from the table in ` + "`internal/config`" + ` (go test ./internal/config -run TestReference -rewrite). Do not edit.

One YAML file; every scalar key is also a flag (` + "`node.id` = `--node-id`" + `) and an environment variable (` + "`STRANDLINE_NODE_ID`" + `).
A flag beats the environment, which beats the file, which beats the default. ` + "`strandline config print --effective --origin`" + ` shows what counts and why.
An unknown key stops the start and names the nearest one; so does a variable that looks like a mistyped one.
"Live" settings can be changed while the node runs (IncrementalAlterConfigs on a broker, or on all brokers with the empty name).

`)
	section(&b, "Node settings", "", nodeRows)
	section(&b, "Listeners", "Keys of each element of `listeners:`. Without any, `{name: plain, address: 127.0.0.1:9092}` is used.", normalize(ScopeNode, listenerTable()))
	section(&b, "Broker settings", "Under `kafka:`, with Kafka's names. Where a topic config has the same meaning, the broker setting is its default.", brokerRows)
	section(&b, "Topic configs", "Set per topic; all are live. Units are in the names: `.ms` is milliseconds, `.bytes` is bytes.", topicRows)
	return b.String()
}

func section(b *strings.Builder, title, text string, rows []*Setting) {
	fmt.Fprintf(b, "## %s\n\n", title)
	if text != "" {
		fmt.Fprintf(b, "%s\n\n", text)
	}
	b.WriteString("| name | type | default | allowed | live | meaning |\n|---|---|---|---|---|---|\n")
	for _, s := range rows {
		if s.hidden {
			continue
		}
		def := code(s.Default)
		if s.DevDefault != nil {
			def += " (" + code(*s.DevDefault) + " under `dev`)"
		}
		live := ""
		if s.Live {
			live = "yes"
		}
		doc := s.Doc
		if s.Fixed != "" {
			doc += " (" + s.Fixed + ".)"
		}
		if s.Synonym != "" {
			doc += " Default from the broker's `" + s.Synonym + "`."
		}
		fmt.Fprintf(b, "| `%s` | %v | %s | %s | %s | %s |\n", s.Name, s.Type, def, s.Allowed(), live, doc)
	}
	b.WriteString("\n")
}

func code(s string) string {
	if s == "" {
		return "(empty)"
	}
	return "`" + s + "`"
}
