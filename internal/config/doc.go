// Package config holds every setting of Strandline in one typed table.
//
// Knows: the names, types, defaults, limits and documentation of node settings (strandline.yaml), broker settings (Kafka's
// names) and topic configs (Kafka's names, and ours under "strandline."); how a value is checked; how topic configs inherit from
// broker settings; which source a described value has. Does not know: files, flags and environment (config/load does), who may
// change a setting, or what a setting does.
//
// Invariants: every field of Node, Broker and Topic is bound to exactly one row of the table, so a default is written once. A
// value that cannot be honoured in this release is refused with the reason, never accepted in silence. Durations that carry a unit
// of milliseconds in Kafka's names are time.Duration in the structs; Unlimited means "none".
//
// Concurrency: values only. A Broker is immutable: With* methods return a changed copy.
//
// Files: setting.go (the row type), value.go (checks and parsing), table.go (the index over all rows), table_topic.go, table_broker.go and
// table_node.go (the rows), topic.go, broker.go and node.go (the structs), find.go (flat names and listeners), describe.go (DescribeConfigs
// entries), nearest.go (suggestions), reference.go (the reference page), limits.go, errors.go.
package config
