package group

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// showRecord prints a record by decoding it with kmsg.
func showRecord(kv KV) string {
	var ok kmsg.OffsetCommitKey
	if kv.Key[1] == offsetKeyVersion {
		must(ok.ReadFrom(kv.Key))
		where := fmt.Sprintf("offset %s %s/%d", ok.Group, ok.Topic, ok.Partition)
		if kv.Value == nil {
			return where + " removed"
		}
		var v kmsg.OffsetCommitValue
		must(v.ReadFrom(kv.Value))
		return fmt.Sprintf("%s v%d = %d epoch=%d metadata=%q at=%s id=%d", where, v.Version, v.Offset, v.LeaderEpoch, v.Metadata, stamp(v.CommitTimestamp), v.TopicID[15])
	}
	switch kv.Key[1] {
	case undoKeyVersion & 0xff:
		must(ok.ReadFrom(kv.Key))
		where := fmt.Sprintf("undo %s %s/%d", ok.Group, ok.Topic, ok.Partition)
		if kv.Value == nil {
			return where + " removed"
		}
		_, o, err := readOffset(kv.Key, kv.Value, recordTime)
		must(err)
		return fmt.Sprintf("%s = %d at=%s id=%d", where, o.offset, stamp(o.atMs), o.topic[15])
	case widthKeyVersion & 0xff:
		s := NewShard(Config{})
		must(s.applyWidth(kv.Key, kv.Value))
		for id, w := range s.widths {
			return fmt.Sprintf("width %s id=%d = %d", w.name, id[15], w.count)
		}
		return fmt.Sprintf("width id=%d removed", kv.Key[len(kv.Key)-1])
	}
	if kv.Key[1] > groupKeyVersion {
		return showConsumerRecord(kv)
	}
	var gk kmsg.GroupMetadataKey
	must(gk.ReadFrom(kv.Key))
	if kv.Value == nil {
		return "group " + gk.Group + " removed"
	}
	var v kmsg.GroupMetadataValue
	must(v.ReadFrom(kv.Value))
	var b strings.Builder
	fmt.Fprintf(&b, "group %s v%d type=%s gen=%d protocol=%s leader=%s at=%s", gk.Group, v.Version, v.ProtocolType, v.Generation, orNone(v.Protocol), short(orNone(v.Leader)), stamp(v.CurrentStateTimestamp))
	for _, m := range v.Members {
		fmt.Fprintf(&b, "\n    %s", short(m.MemberID))
		if m.InstanceID != nil {
			fmt.Fprintf(&b, " instance=%s", *m.InstanceID)
		}
		fmt.Fprintf(&b, " client=%s host=%s r=%v s=%v reads=%s owns=%q", m.ClientID, m.ClientHost, time.Duration(m.RebalanceTimeoutMillis)*time.Millisecond,
			time.Duration(m.SessionTimeoutMillis)*time.Millisecond, showMetadata(m.Subscription), showAssignment(m.Assignment))
	}
	return b.String()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func orNone(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// stamp shows a time of the wall clock by its distance from the start of the script.
func stamp(ms int64) string {
	return time.UnixMilli(ms).Sub(recordTime).String()
}

func showMetadata(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	if topics, ok := topicsOf(b); ok {
		return strings.Join(topics, "+")
	}
	return string(b)
}

// showAssignment shows what a consumer is given by its partitions, and anything else as it is.
func showAssignment(b []byte) string {
	var a kmsg.ConsumerMemberAssignment
	if a.ReadFrom(b) != nil || !bytes.Equal(a.AppendTo(nil), b) {
		return string(b)
	}
	var list []string
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			list = append(list, fmt.Sprintf("%s/%d", t.Topic, p))
		}
	}
	return strings.Join(list, " ")
}

func showReply(r any) string {
	switch r := r.(type) {
	case *JoinReply:
		return showJoin(r)
	case *SyncReply:
		if r.Code != kafka.None {
			return "sync " + r.Code.String()
		}
		return fmt.Sprintf("sync type=%s protocol=%s owns=%q", r.ProtocolType, r.Protocol, showAssignment(r.Assignment))
	case *HeartbeatReply:
		return "beat " + r.Code.String()
	case *LeaveReply:
		return "leave " + r.Code.String() + showList(r.Members, func(m LeftMember) string {
			return strings.TrimSuffix(short(m.MemberID)+"@"+m.InstanceID, "@") + "=" + m.Code.String()
		})
	case *CommitReply:
		return "commit" + showCodes(r.Topics)
	case *FetchReply:
		return "fetch " + r.Code.String() + showList(r.Topics, showFetched)
	case *DescribeReply:
		return "describe" + showList(r.Groups, showDescription)
	case *ListReply:
		return "list" + showList(r.Groups, func(g ListedGroup) string {
			return fmt.Sprintf("%s(%s,%s,%s)", g.Group, g.ProtocolType, g.State, g.Type)
		})
	case *DeleteReply:
		return "delete" + showList(r.Groups, func(g GroupCode) string { return g.Group + "=" + g.Code.String() })
	case *SeekReply:
		return fmt.Sprintf("seek %v moved=%d", r.Code, r.Moved)
	case *ConsumerHeartbeatReply:
		return showConsumerReply(r)
	case *DescribeConsumerReply:
		return "look" + showList(r.Groups, showConsumers)
	case *DeleteOffsetsReply:
		return "forget " + r.Code.String() + showCodes(r.Topics)
	}
	return fmt.Sprintf("%T", r)
}

func showList[T any](list []T, show func(T) string) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(" " + show(e))
	}
	return b.String()
}

func showJoin(r *JoinReply) string {
	if r.Code != kafka.None {
		return strings.TrimSpace(fmt.Sprintf("join %v %s", r.Code, short(r.MemberID)))
	}
	skip := ""
	if r.SkipAssign {
		skip = " skip"
	}
	return fmt.Sprintf("join gen=%d type=%s protocol=%s leader=%s you=%s%s", r.Generation, r.ProtocolType, r.Protocol, short(r.Leader), short(r.MemberID), skip) +
		showList(r.Members, func(m JoinedMember) string {
			return strings.TrimSuffix(short(m.MemberID)+"@"+m.InstanceID, "@") + ":" + showMetadata(m.Metadata)
		})
}

func showCodes(topics []TopicCodes) string {
	return showList(topics, func(t TopicCodes) string {
		return strings.TrimSpace(showList(t.Partitions, func(p PartitionCode) string { return fmt.Sprintf("%s/%d=%v", t.Name, p.Partition, p.Code) }))
	})
}

func showFetched(t FetchedTopic) string {
	return strings.TrimSpace(showList(t.Partitions, func(p FetchedPartition) string {
		return fmt.Sprintf("%s/%d=%d:%d:%s", t.Name, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata)
	}))
}

func showDescription(d Description) string {
	return fmt.Sprintf("%s %v %s type=%s protocol=%s", d.Group, d.Code, d.State, d.ProtocolType, d.Protocol) + showList(d.Members, func(m DescribedMember) string {
		return fmt.Sprintf("[%s instance=%s client=%s host=%s reads=%s owns=%q]", short(m.MemberID), m.InstanceID, m.ClientID, m.ClientHost, showMetadata(m.Metadata), showAssignment(m.Assignment))
	})
}

func showNote(n Note) string {
	what := map[NoteKind]string{
		RebalanceStarted: "rebalance started", RebalanceCompleted: "rebalance completed", MemberRemoved: "member removed",
		OffsetExpired: "offset expired", GroupRemoved: "group removed", OffsetsMoved: "offsets moved", PartitionsAdded: "partitions added",
		GroupConverted: "group converted", GroupNotConverted: "group not converted",
	}[n.Kind]
	switch {
	case n.Member != "":
		what += " " + n.Member
	case n.Topic != "":
		what += fmt.Sprintf(" %s/%d", n.Topic, n.Partition)
	}
	if n.Count > 0 {
		what += fmt.Sprintf(" (%d)", n.Count)
	}
	return short(fmt.Sprintf("note %s gen=%d %s: %s", n.Group, n.Generation, what, n.Why))
}
