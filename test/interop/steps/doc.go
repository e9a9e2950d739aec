// Package steps is the walk that every client takes through the broker, and the lines by which a program tells the driver
// about it.
//
// Knows: the names of the steps, the records whose shapes clients confuse, the order of the walk (for clients written in
// Go; the other languages repeat it in their own words). Does not know: any client library.
//
// # The lines
//
// A client program gets the broker's address as its argument and prints on stdout
//
//	version V                      the client library's own version
//	step NAME ok                   the step was done and its result checked
//	step NAME not-offered WHY      the client's API has no such thing
//	step NAME FAIL WHY
//	RESTART                        kill -9 and restart the broker now; the program waits for the line DONE on stdin
//
// Every step of Names is reported once. Anything else printed goes to the log.
//
// # The walk
//
// One topic per codec with the records of Samples. Then the topic "orders" with two partitions of ten records each: a first
// member of the group reads all and commits 5; a second one must begin at 5, commits 8, and lives through kill -9 of the
// broker, after which five more records per partition come; it must see them all and nothing below 8. A third one must begin
// at 8. The group is described, reset to 2, and a fourth one must begin at 2. At last the group and the topics go.
//
// Files: steps.go lines, scenario.go and group.go the walk, sample.go the records.
package steps
