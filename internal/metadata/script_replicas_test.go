package metadata

import (
	"strconv"
	"strings"

	"strandline.dev/internal/kafka"
)

// replicaEvent builds the events about replicas and the brokers that hold them.
func (s *script) replicaEvent(c command, who kafka.Principal) Event {
	switch c.verb {
	case "isr":
		if !c.flag("node") { // its leader asks
			c.args["node"] = "1"
			for _, tp := range s.anyReplicas(c.list("of")) {
				if t := s.image.TopicByID(tp.Topic); t != nil && int(tp.Partition) < len(t.Partitions) && t.Partitions[tp.Partition].Leader != kafka.NoNode {
					c.args["node"] = t.Partitions[tp.Partition].Leader.String()
				}
			}
		}
		return AlterISR{Now: s.now, Node: c.node("node"), Epoch: s.epoch(c), Changes: s.isrChanges(c)}
	case "damage":
		return ReportDamage{Node: c.node("node"), Epoch: s.epoch(c), Damaged: s.damaged(c)}
	case "drain":
		return DrainBroker{Principal: who, Node: c.node("node"), Undo: c.flag("undo")}
	case "remove":
		return RemoveBroker{Principal: who, Node: c.node("node")}
	case "recover":
		ev := RecoverPartitions{Principal: who, Whole: c.flag("whole")}
		for _, tp := range s.anyReplicas(c.list("of")) {
			ev.Partitions = append(ev.Partitions, PartitionEnds{TP: tp, Ends: s.ends(c.list("ends"))})
		}
		return ev
	case "balance":
		return BalanceLeaders{Max: int(c.number("max", 100))}
	case "continue-drains":
		return ContinueDrains{Seed: uint64(c.number("seed", 1)), Max: int(c.number("max", 100))}
	case "raise":
		return RaiseInternal{Seed: uint64(c.number("seed", 1)), Factor: int(c.number("factor", 3)), Max: int(c.number("max", 100))}
	}
	s.t.Fatalf("unknown command %q", c.verb)
	return nil
}

// isrChanges reads "of=a-0,a-1 to=1,2:7 lost=3 leader-epoch=1 partition-epoch=2"; epochs that are not given are the present ones, "2:7" is broker
// 2 with epoch 7.
func (s *script) isrChanges(c command) []ISRChange {
	var out []ISRChange
	for _, tp := range s.anyReplicas(c.list("of")) {
		change := ISRChange{TP: tp, Lost: nodeList(s.t, c.args["lost"])}
		var now kafka.PartitionState
		if t := s.image.TopicByID(tp.Topic); t != nil && int(tp.Partition) < len(t.Partitions) {
			now = t.Partitions[tp.Partition]
		}
		change.LeaderEpoch = kafka.LeaderEpoch(c.number("leader-epoch", int64(now.LeaderEpoch)))
		change.PartitionEpoch = kafka.PartitionEpoch(c.number("partition-epoch", int64(now.PartitionEpoch)))
		for _, item := range c.list("to") {
			node, epoch, given := strings.Cut(item, ":")
			m := Member{Node: nodeList(s.t, node)[0]}
			if b := s.image.Broker(m.Node); b != nil {
				m.Epoch = b.Epoch
			}
			if given {
				m.Epoch = kafka.BrokerEpoch(s.int(epoch))
			}
			change.ISR = append(change.ISR, m)
		}
		out = append(out, change)
	}
	return out
}

// anyReplicas reads "id-0" items, whether or not there is such a topic.
func (s *script) anyReplicas(items []string) []kafka.TopicPartition {
	var out []kafka.TopicPartition
	for _, item := range items {
		i := strings.LastIndexByte(item, '-')
		id := testID(item[:i])
		if t := s.image.Topic(item[:i]); t != nil {
			id = t.ID
		}
		out = append(out, kafka.TopicPartition{Topic: id, Partition: int32(s.int(item[i+1:]))})
	}
	return out
}

// damaged reads the replicas of a damage report; their leader epoch is the present one unless it is given.
func (s *script) damaged(c command) []DamagedReplica {
	var out []DamagedReplica
	for _, tp := range s.anyReplicas(c.list("of")) {
		var now kafka.LeaderEpoch
		if t := s.image.TopicByID(tp.Topic); t != nil && int(tp.Partition) < len(t.Partitions) {
			now = t.Partitions[tp.Partition].LeaderEpoch
		}
		out = append(out, DamagedReplica{tp, kafka.LeaderEpoch(c.number("leader-epoch", int64(now)))})
	}
	return out
}

// ends reads "node:epoch:end" items.
func (s *script) ends(items []string) []ReplicaEnd {
	var out []ReplicaEnd
	for _, item := range items {
		f := strings.Split(item, ":")
		out = append(out, ReplicaEnd{
			Node: kafka.NodeID(s.int(f[0])), LastEpoch: kafka.LeaderEpoch(s.int(f[1])), End: kafka.Offset(s.int(f[2])),
		})
	}
	return out
}

func (s *script) int(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
