package audit

import (
	"context"
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// TopicName is the topic of the trail.
const TopicName = metadata.AuditTopic

// ensure creates the topic unless it is there. Its own creation is in no entry: it is what entries are kept in.
func (t *Trail) ensure(ctx context.Context) error {
	img := t.cfg.Image()
	if img.Topic(TopicName) != nil {
		return nil
	}
	replicas, up := img.InternalReplicas(replicasMax)
	if t.cfg.Dev {
		replicas = min(replicas, max(up, 1))
	}
	if up < replicas {
		return fmt.Errorf("%d brokers are to hold %s, and %d are up", replicas, TopicName, up)
	}
	ctx, cancel := context.WithTimeout(ctx, createMax)
	defer cancel()
	reply, version, err := t.cfg.Controller.Submit(ctx, metadata.CreateTopics{
		Principal: kafka.Principal{Type: "Node", Name: t.cfg.Node.String()},
		Topics: []metadata.NewTopic{{
			Name: TopicName, Partitions: partitions, ReplicationFactor: int16(replicas), Internal: true,
			Configs: metadata.AuditConfigs(),
		}},
	})
	if err != nil {
		return err
	}
	if err := metadata.Created(reply); err != nil {
		return err
	}
	return t.cfg.Replicas.WaitApplied(ctx, version)
}

// leader finds the partition of a chain and the node that leads it, NoNode if none does.
func (t *Trail) leader(chain int32) (kafka.TopicPartition, kafka.NodeID) {
	topic := t.cfg.Image().Topic(TopicName)
	if topic == nil || chain < 0 || int(chain) >= len(topic.Partitions) {
		return kafka.TopicPartition{}, kafka.NoNode
	}
	return kafka.TopicPartition{Topic: topic.ID, Partition: chain}, topic.Partitions[chain].Leader
}
