// Package tidy holds checks of the source itself, which run with the tests: go test ./internal/tidy.
//
// Knows: the ranks of the packages, what a pure package may use, who may touch the machine, sizes, which names need words,
// and what the documents promise about the source.
//
// Does not know: types. It reads syntax only, so that it stays fast; what needs types is left to vet and staticcheck.
//
// Invariants: every check is proved on small sources that break it and on some that do not (cases_test.go): a check that
// cannot fail is worthless. The exception list may only shrink: an entry that is no longer needed fails the test, and a
// size that is excused must not grow.
//
// Concurrency: none.
//
// Files: table.go (the rules as data), source.go (reading the tree), tidy.go (the list of checks), one check_*.go for each
// subject, exceptions.go.
package tidy
