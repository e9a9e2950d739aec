package group

import "strandline.dev/internal/kafka"

// Catalog is what the cluster's topics are at one moment. The shell makes it of a metadata Image; it must not change.
type Catalog interface {
	// Version numbers the moment: the same version means the same answers.
	Version() uint64
	// Topic returns the topic that has a name, with the number of its partitions; false when there is none.
	Topic(name string) (id kafka.TopicID, partitions int32, ok bool)
	// Check says what is wrong with a regular expression (RE2 syntax), or that it is too costly; nil when it may be subscribed to.
	Check(pattern string) error
	// Matching returns the names, in order, that an expression which passed Check matches as a whole, of those that reader may see; "" sees
	// all.
	Matching(pattern, reader string) []string
	// Gives says whether Matching has a topic.
	Gives(pattern, reader, topic string) bool
}
