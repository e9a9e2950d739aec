package coordinator

import (
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// TopicName is the topic that holds the groups and their offsets, in Kafka's record formats.
const TopicName = "__consumer_offsets"

// partitionOf says which of n partitions holds a group: Java's String.hashCode modulo n, as in Kafka, so that foreign tools find it.
func partitionOf(group string, n int) int32 {
	var h int32
	for _, r := range group { // bytes that are no text count as U+FFFD, as they do when Java decodes them
		if r >= 0x10000 { // two UTF-16 code units
			r -= 0x10000
			h = 31*h + 0xd800 + r>>10
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	if h < 0 {
		h = -h // stays negative for the smallest one, which Kafka takes for 0
	}
	return max(h, 0) % int32(n)
}

// topicIn returns the progress topic of an Image, or nil while there is none in service.
func topicIn(img *metadata.Image) *metadata.Topic {
	if t := img.Topic(TopicName); t != nil && t.State == metadata.StateReady {
		return t
	}
	return nil
}

// Exists says whether the topic is there; Create makes it.
func (c *Coordinator) Exists() bool { return topicIn(c.cfg.Image()) != nil }

// Locate returns the node that coordinates a group, by the newest Image. Error: ErrNotAvailable.
func (c *Coordinator) Locate(group string) (kafka.NodeID, error) {
	t := topicIn(c.cfg.Image())
	if t == nil {
		return kafka.NoNode, ErrNotAvailable
	}
	leader := t.Partitions[partitionOf(group, len(t.Partitions))].Leader
	if leader == kafka.NoNode {
		return kafka.NoNode, ErrNotAvailable
	}
	return leader, nil
}
