// Package hostile attacks the built binary as a process of its own, where memory and open files are what the operating system says they are.
//
// Knows: how to start a node, how much memory and how many files it holds (/proc, so Linux only), and how to speak to it as no client
// should. Does not know: anything inside the broker. The list of hostile requests, and changed sessions, are tests of internal/server,
// where the heap can be measured; here are the cases that are about a whole process: C086, C088, C090.
//
// Bounds on memory are those of the reliability page. No bound here is on time.
package hostile
