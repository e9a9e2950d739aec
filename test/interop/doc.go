// Package interop runs foreign Kafka clients, and Kafka's own command-line tools, against the built binary.
//
// Knows: which programs there are (clients), how to start one, what it must report (package steps), how to read back with
// another client what a program produced; kfake, the fake broker used as a second opinion. Does not know: anything inside
// the broker, or any foreign library except franz-go and confluent-kafka-go.
//
// TestInterop has one subtest per client. Each gets a broker of its own, runs the program under clients/, kills the broker
// with -9 when the program asks, and needs every step reported. README's table is what that run found; -rewrite writes it.
// STRANDLINE_BIN names the binary and STRANDLINE_INTEROP_CACHE the installed clients; `.ci/interop` sets both, installs from
// versions.txt and keeps each client's log under .cache/interop/logs.
//
// TestThreeNodes_LeaderKilledHalfway walks them once more through three serve processes each (package rig of test/chaos), with three replicas of
// every topic, and kills the leader of the topic that is being read; the program goes on while others take over. -interop.three names who walks.
// Fault model: kill -9 of one node of three. The members are to go on from their commits; the records that come after the kill are published while
// the leader is gone, so a publisher that is not idempotent has nothing in flight that it could store twice.
//
// TestChurn has members of three clients share one group on three nodes while members come, leave and are killed, and so is the coordinator:
// programs of their own (clients/java/Member.java, clients/python/confluent_member.py, clients/go/member) that say on stdout what they were given,
// read and committed. -interop.churn is the number of rounds of each protocol.
//
// TestSecure_ReadmeSection does what the README's section "Locked down" says, command by command, and no more; TestSecure_ClientsWalk walks clients
// through that cluster over SASL_SSL, as a user whose rights are rules. -interop.secure names who walks.
//
// It is its own module, so that cgo and foreign clients stay out of the broker's dependencies.
//
// Files: clients_test.go the list, program_test.go one run, stored_test.go the codecs on disk, tools_test.go Kafka's tools,
// readme_test.go the table, pins_test.go versions.txt, three_test.go the three nodes, churn_test.go, member_test.go and churnbook_test.go the churn, secure_test.go the
// locked-down cluster; broker_test.go, samples_test.go, franz_test.go, confluent_test.go,
// kcat_test.go and kfake_test.go the smoke tests.
package interop
