// Package mutants checks the checkers: each mutant breaks one rule of replication, election or groups in the source, and what is named as its
// catcher must fail because of it. A mutant that nothing catches is a hole in the tests.
//
// Knows: the mutants in testdata, one a file: what rule it breaks, the file, the lines taken out and put in, and the catcher, which is
// "sim SEEDS EVENTS" for so many seeds of the simulator, or "test PACKAGE PATTERN". Nothing is changed in the checkout: the go command
// gets the mutated file as an overlay.
//
// Lengths: a plain `go test` checks that every mutant still fits the source; -mutants.run N runs N of them, 0 all, each after the other.
package mutants
