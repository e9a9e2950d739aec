package canary

import (
	"context"
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// ensure creates the topic unless it is there, and returns it.
func (c *Canary) ensure(ctx context.Context) (*metadata.Topic, error) {
	img := c.cfg.Image()
	if t := img.Topic(metadata.CanaryTopic); t != nil {
		return t, nil
	}
	replicas, up := img.InternalReplicas(replicasMax)
	if c.cfg.Dev {
		replicas = min(replicas, max(up, 1))
	}
	if up < replicas {
		return nil, fmt.Errorf("%d brokers are to hold %s, and %d are up", replicas, metadata.CanaryTopic, up)
	}
	ctx, cancel := context.WithTimeout(ctx, createMax)
	defer cancel()
	value := func(s string) *string { return &s }
	reply, _, err := c.cfg.Controller.Submit(ctx, metadata.CreateTopics{
		Principal: c.self(),
		Topics: []metadata.NewTopic{{
			Name: metadata.CanaryTopic, Partitions: partitions, ReplicationFactor: int16(replicas), Internal: true,
			Configs: map[string]*string{
				"cleanup.policy": value("delete"), "retention.ms": value(retentionMs), "segment.ms": value(retentionMs), "segment.bytes": value(segmentBytes),
			},
		}},
	})
	if err == nil {
		err = metadata.Created(reply)
	}
	if err != nil {
		return nil, err
	}
	return nil, errNotYet
}

func (c *Canary) self() kafka.Principal {
	return kafka.Principal{Type: kafka.NodePrincipal, Name: c.cfg.Node.String()}
}
