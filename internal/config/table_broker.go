package config

import "math"

// NoProtocolCap is the value of strandline.protocol.cap that caps nothing.
const NoProtocolCap = "none"

// noThrottle is the text of settings that Kafka's tool for moves sets and clears beside the one that holds.
const noThrottle = "Accepted for compatibility; leader.replication.throttled.rate bounds moves and other copies."

// brokerTable lists the broker settings that are not defaults of topic configs.
func brokerTable() []Setting {
	return append(append(brokerTopicRows(), brokerConnectionRows()...), brokerGroupRows()...)
}

// DrainKey is the broker config that takes a broker out of service; it is set for one broker.
const DrainKey = "strandline.drain"

func brokerTopicRows() []Setting {
	return []Setting{
		{Name: DrainKey, Type: Bool, Default: "false", Live: true,
			Doc: "Takes a node out of service: it gets no new replicas, and loses its leaderships and replicas to others. Set by `node drain`, for one node."},
		{Name: "num.partitions", Type: Int, Default: "1", Min: 1, Max: PartitionsPerTopicMax, Live: true,
			Doc:    "Partitions of a topic that is created without a number.",
			broker: func(b *Broker) any { return &b.NumPartitions }},
		{Name: "default.replication.factor", Type: Int, Default: "1", Min: 1, Max: ReplicationFactorMax, Live: true,
			Doc:    "Replicas of a topic that is created without a number.",
			broker: func(b *Broker) any { return &b.DefaultReplicationFactor }},
		{Name: "auto.create.topics.enable", Type: Bool, Default: "false", DevDefault: dev("true"), Live: true,
			Doc:    "Whether naming an unknown topic in a Metadata request creates it.",
			broker: func(b *Broker) any { return &b.AutoCreateTopics }},
		{Name: "delete.topic.enable", Type: Bool, Default: "true",
			Doc:    "Whether topics can be deleted by clients.",
			broker: func(b *Broker) any { return &b.DeleteTopicEnable }},
		{Name: "log.retention.minutes", Type: Int, Default: "", Min: -1, Max: math.MaxInt32,
			Doc: "Sets log.retention.ms in minutes; log.retention.ms wins."},
		{Name: "log.retention.hours", Type: Int, Default: "336", Min: -1, Max: math.MaxInt32,
			Doc: "Sets log.retention.ms in hours; log.retention.minutes and log.retention.ms win."},
		{Name: "log.roll.hours", Type: Int, Default: "168", Min: 1, Max: math.MaxInt32,
			Doc: "Sets log.roll.ms in hours; log.roll.ms wins."},
		{Name: "leader.replication.throttled.rate", Type: Long, Default: "9223372036854775807", Min: 1, Live: true,
			Doc:    "Bytes a second that a broker gives to replicas that are not in sync: those that a move adds, and those that come back. Replicas in sync never wait for it. Below the rate of publishing they never catch up.",
			broker: func(b *Broker) any { return &b.CopyRate }},
		{Name: "follower.replication.throttled.rate", Type: Long, Default: "9223372036854775807", Min: 0, Live: true, Doc: noThrottle},
		{Name: "replica.alter.log.dirs.io.max.bytes.per.second", Type: Long, Default: "9223372036854775807", Min: 0, Live: true, Doc: noThrottle},
		{Name: "producer.id.expiration.ms", Type: Int, Default: "86400000", Min: 1, Max: math.MaxInt32,
			Doc:    "How long the state of an idle idempotent producer is kept, in milliseconds.",
			broker: func(b *Broker) any { return &b.ProducerIDExpiration }},
	}
}

func brokerConnectionRows() []Setting {
	return []Setting{
		{Name: "fetch.max.bytes", Type: Int, Default: "57671680", Min: 1024, Max: math.MaxInt32,
			Doc:    "Largest answer to one fetch, in bytes.",
			broker: func(b *Broker) any { return &b.FetchMaxBytes }},
		{Name: "max.incremental.fetch.session.cache.slots", Type: Int, Default: "1000", Min: 0, Max: math.MaxInt32,
			Doc:    "Fetch sessions a broker keeps.",
			broker: func(b *Broker) any { return &b.FetchSessionSlots }},
		{Name: "socket.request.max.bytes", Type: Int, Default: "104857600", Min: 1, Max: math.MaxInt32,
			Doc:    "Largest request frame, in bytes.",
			broker: func(b *Broker) any { return &b.SocketRequestMaxBytes }},
		{Name: "queued.max.request.bytes", Type: Long, Default: "268435456", Min: 1 << 20,
			Doc:    "Memory for requests that are being read or handled, in bytes; readers wait at the limit.",
			broker: func(b *Broker) any { return &b.QueuedMaxRequestBytes }},
		{Name: "connections.max.idle.ms", Type: Long, Default: "600000", Min: 1,
			Doc:    "How long an idle connection stays open, in milliseconds.",
			broker: func(b *Broker) any { return &b.ConnectionsMaxIdle }},
		{Name: "max.connections", Type: Int, Default: "10000", Min: 1, Max: math.MaxInt32,
			Doc:    "Client connections a broker keeps open; further ones are closed at once. Fewer if the process may not have so many open files.",
			broker: func(b *Broker) any { return &b.ConnectionsMax }},
		{Name: "max.request.partition.size.limit", Type: Int, Default: "2000", Min: 1, Max: math.MaxInt32,
			Doc:    "Partitions in one answer to DescribeTopicPartitions.",
			broker: func(b *Broker) any { return &b.MaxRequestPartitionLimit }},
		{Name: "strandline.protocol.cap", Type: String, Default: NoProtocolCap,
			Enum:   []string{NoProtocolCap, "2.0", "2.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4"},
			Doc:    "Release of Kafka whose API versions are the highest that are advertised and served, to try the paths that clients take with older brokers.",
			broker: func(b *Broker) any { return &b.ProtocolCap }},
	}
}

func brokerGroupRows() []Setting {
	return []Setting{
		{Name: "group.min.session.timeout.ms", Type: Int, Default: "6000", Min: 1, Max: math.MaxInt32,
			Doc:    "Shortest session time-out a group member may ask for, in milliseconds.",
			broker: func(b *Broker) any { return &b.GroupMinSessionTimeout }},
		{Name: "group.max.session.timeout.ms", Type: Int, Default: "1800000", Min: 1, Max: math.MaxInt32,
			Doc:    "Longest session time-out a group member may ask for, in milliseconds.",
			broker: func(b *Broker) any { return &b.GroupMaxSessionTimeout }},
		{Name: "group.initial.rebalance.delay.ms", Type: Int, Default: "3000", DevDefault: dev("0"), Min: 0, Max: math.MaxInt32,
			Doc:    "How long an empty group waits for more members before its first rebalance, in milliseconds.",
			broker: func(b *Broker) any { return &b.GroupInitialRebalance }},
		{Name: "group.max.size", Type: Int, Default: "2147483647", Min: 1, Max: math.MaxInt32,
			Doc:    "Members of one group.",
			broker: func(b *Broker) any { return &b.GroupMaxSize }},
		{Name: "group.consumer.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: math.MaxInt32,
			Doc:    "How long a member of a consumer group may be silent before it is out of it, in milliseconds.",
			broker: func(b *Broker) any { return &b.ConsumerGroupSession }},
		{Name: "group.consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: math.MaxInt32,
			Doc:    "Time between two heartbeats of a member of a consumer group, in milliseconds. A member learns with its next one what it is to give up or may read.",
			broker: func(b *Broker) any { return &b.ConsumerGroupHeartbeat }},
		{Name: "group.consumer.max.size", Type: Int, Default: "2147483647", Min: 1, Max: math.MaxInt32,
			Doc:    "Members of one consumer group.",
			broker: func(b *Broker) any { return &b.ConsumerGroupMaxSize }},
		{Name: "group.consumer.assignors", Type: List, Default: "uniform,range", Enum: []string{"uniform", "range"},
			Doc:    "How consumer groups may share partitions; the first is for groups whose members do not say.",
			broker: func(b *Broker) any { return &b.ConsumerGroupAssignors }},
		{Name: "group.consumer.migration.policy", Type: String, Default: "bidirectional", Enum: []string{"bidirectional", "upgrade", "downgrade", "disabled"},
			Doc:    "Which way a group with members may go between the classic and the consumer protocol when a member joins by the other one.",
			broker: func(b *Broker) any { return &b.ConsumerGroupMigration }},
		{Name: "offset.metadata.max.bytes", Type: Int, Default: "4096", Min: 0, Max: math.MaxInt32,
			Doc:    "Largest text a client may store beside a committed offset, in bytes.",
			broker: func(b *Broker) any { return &b.OffsetMetadataMaxBytes }},
		{Name: "offsets.retention.minutes", Type: Int, Default: "20160", Min: 1, Max: math.MaxInt32,
			Doc: "How long the offsets of a group without members are kept, in minutes; never less than 14 days, nor than the records of their topic."},
		{Name: "offsets.topic.num.partitions", Type: Int, Default: "50", Min: 1, Max: PartitionsPerTopicMax,
			Doc:    "Partitions of the topic that holds committed offsets.",
			broker: func(b *Broker) any { return &b.OffsetsTopicPartitions }},
		{Name: "offsets.topic.replication.factor", Type: Short, Default: "3", Min: 1, Max: ReplicationFactorMax,
			Doc:    "Most replicas of the topic that holds committed offsets.",
			broker: func(b *Broker) any { return &b.OffsetsTopicReplication }},
	}
}
