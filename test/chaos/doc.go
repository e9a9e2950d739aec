// Package chaos runs the built binary as real processes, kills them, and checks what survived.
//
// Knows: how to start a node, how to kill it at chosen moments, and how to judge the log afterwards. Does not know: anything
// inside the broker; it sees what a client and the file system see.
//
// Faults, and why they are fair:
//   - kill -9 of the release build: the process dies, the page cache lives. Nothing written may be lost.
//   - kill -9 of the fault build (-tags fault): bytes not synced die with the process and the boot id is new, as in a power
//     cut. Nothing acknowledged under `synced` may be lost.
//
// Judgement (P1, P3-P5, P19 of the reliability page): every acknowledged record is read exactly once, per partition in the
// order it was sent, at the offset that was acknowledged; a record never acknowledged appears at most once.
//
// Three nodes: serve processes behind proxies (package rig), with clients of all kinds at work (package load) whose notes are judged at the
// end together with what every replica has on disk (package check; it is itself tested on bad and good histories). TestDrill runs named
// faults, TestRandom random ones; random_test.go says which are fair. A violation prints the seed of the choices; the interleaving is the
// machine's, so a seed makes a failure likely again, not certain.
//
// Lengths of cluster tests: -chaos.drill all -chaos.drills 20, -chaos.minutes 60, -chaos.mode liveness, -chaos.progress 10s. -chaos.keep DIR keeps data and logs.
//
// Lengths: -chaos.rounds and -chaos.fault-rounds; the defaults are short enough for `go test ./...`.
package chaos
