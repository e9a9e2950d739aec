// Package sim runs the replication cores of a whole cluster on one goroutine, from one seed, in virtual time, under faults, and checks the
// invariants after every event. A failing run prints its seed; the same seed gives the same run.
//
// Real here: isr.Leader and the follower's rules, metadata.Image.Decide and Apply. Modelled, as small as they can be: logs and what a crash
// leaves of them (log.go), links (world.go), what a node's shell does between the cores (node.go, lead.go, follow.go), the metadata quorum as
// an ideal log that loses what is not committed when its leader changes (controller.go), and clients (client.go).
//
// Checked: I1 (acknowledged means held), I2 (the watermark never goes back, and is held by all that may lead), I3 (one leader process an epoch),
// I4 (elections), I5 (no committed record is truncated), I6 (what is shown is committed), I13 (images rise), P1, P10, P12, P14-P18; after healing,
// that the cluster is whole again and takes records (P44). checks.go says how.
//
// Fault model: faults.go. It comes first: what it calls unfair is not injected, since no broker could keep its promises then.
//
// Concurrency: one goroutine a run; runs are independent.
package sim
