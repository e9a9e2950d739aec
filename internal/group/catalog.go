package group

import "strandline.dev/internal/kafka"

// Catalog is what the cluster's topics are at one moment. The shell makes it of a metadata Image; it must not change.
type Catalog interface {
	// Version numbers the moment: the same version means the same answers.
	Version() uint64
	// Topic returns the topic that has a name, with the number of its partitions; false when there is none.
	Topic(name string) (id kafka.TopicID, partitions int32, ok bool)
	// Matching returns the names, in order, that a regular expression (RE2 syntax) matches as a whole. The error says what is wrong with
	// the expression. Of them it returns those that reader may see; "" sees all.
	Matching(pattern, reader string) ([]string, error)
}
