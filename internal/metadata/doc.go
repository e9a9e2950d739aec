// Package metadata is what the cluster has agreed about itself, and every rule by which that changes.
//
// Knows: the metadata records and their bytes; the immutable Image they add up to; Apply, the only way an Image changes; every
// controller decision (registration, fencing, election, placement, topics and their deletion, configs, producer ids). Does not
// know: Raft, disks, sockets, clocks, random numbers, goroutines: time, ids and seeds come in with the event.
//
// A decision reads an Image and returns records and a reply; it changes nothing. The same Apply runs on the active controller, on
// followers, on restart and from a snapshot, and its outcome does not depend on how records are grouped into entries. So a decision may
// be split over entries at any record; the order of its records is chosen so that each prefix is a safe state.
//
// Invariants held here:
//   - I1: EffectiveMinISR is derived in Apply, never in a record: the Apply of the config or of the replica set that changes it sets the
//     field and raises the partition epoch.
//   - I3: leader epochs only rise, and each registration raises that of every partition the node led.
//   - I3: an ISR changes only by the leader of the present epoch, registered as it says, on the partition epoch it has seen.
//   - I4: only a member of ISR or ELR is elected, except by RecoverPartitions, an operator's act; the ELR is empty whenever the ISR has the effective
//     minimum; unclean replicas leave both; only an unfenced broker, in the registration the leader has seen, joins an ISR.
//   - I10: a replica's directory may be deleted only while PendingPurges names it.
//   - I13: Apply refuses a version below the Image's and an epoch that goes back.
//
// Concurrency: an Image is immutable and may be read by any number of goroutines. Everything else is pure functions.
//
// Files: image.go, apply*.go, table.go (the persistent sorted map under the Image); record.go, codec.go, snapshot.go; event.go, reply.go,
// codec_event.go, codec_reply.go, coder.go (how they travel between nodes); decide.go; one file per decision: register.go, fence.go, elect.go,
// create.go, place.go, partitions.go, remove.go, configs.go, preferred.go, isr.go, assignments.go, move.go, drain.go, raise.go, balance.go (and
// recovery), resume.go; access.go, access_decide.go (ACLs and credentials); quota.go, quota_decide.go; internal.go (what may not be done to the brokers' own topics); names.go, limits.go, errors.go.
package metadata
