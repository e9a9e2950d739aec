// Package plan estimates what a workload needs: bytes, brokers, owners, the time until a backlog is lost (R160-R170), and says what each lever
// moves and where it ends (R172).
//
// Knows: the arithmetic of the estimate. Does not know: what a broker can do. There is no such number that holds everywhere (R171): it is
// measured with `strandline bench` on the machines that are meant, and compared with the load that a broker gets here.
//
// Invariants:
//   - Units are decimal: 1 MB is 1,000,000 bytes (R169).
//   - Compression, indexes, protocol overhead, moves, spare brokers and prices are left out unless the inputs say how much they are, as measured.
//   - A figure says from which sum it comes.
//
// Concurrency: pure functions.
//
// Files: inputs.go (what is asked, and what is refused), plan.go (Compute), figures.go (the results by name), advice.go (levers and notes),
// text.go (numbers for people),
// errors.go.
package plan
