package server

import (
	"context"
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/wire"
)

// unknownBytes is the protocol's value for a size that is not known.
const unknownBytes = -1

// handleDescribeLogDirs describes the one data directory of this node: the partitions in it and the room on its disk. What lies in the
// trash or in quarantine has no name for clients; it counts only as used room.
func (s *Server) handleDescribeLogDirs(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeLogDirsRequest)
	resp := reply[*kmsg.DescribeLogDirsResponse](req)
	dir := kmsg.NewDescribeLogDirsResponseDir()
	disk, err := s.cfg.Logs.Volume()
	dir.Dir, dir.TotalBytes, dir.UsableBytes = disk.Path, disk.Total, disk.Usable
	if err != nil {
		s.cfg.Log.Warn("the room on the data directory's disk is not known", "dir", disk.Path, "error", err)
		dir.TotalBytes, dir.UsableBytes = unknownBytes, unknownBytes
	}
	if disk.Bound.Limit > 0 {
		dir.UnknownTags.Set(wire.TagDiskRoom, roomTag(&disk))
	}
	img := s.cfg.Image()
	switch wanted, ok := wantedPartitions(img, req); {
	case !ok:
		resp.ErrorCode, dir.ErrorCode = int16(kafka.PolicyViolation), int16(kafka.PolicyViolation)
	case req.Topics == nil:
		s.describeDir(img, s.cfg.Logs.Partitions(), &dir)
	default:
		s.describeDir(img, wanted, &dir)
	}
	resp.Dirs = append(resp.Dirs, dir)
	return ready(resp)
}

// roomTag is the value of wire.TagDiskRoom.
func roomTag(v *replica.Volume) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(v.Bound.Used))
	b = binary.BigEndian.AppendUint64(b, uint64(v.Bound.Limit))
	if v.Refusal != nil {
		b = append(b, v.Refusal.Error()...)
	}
	return b
}

// wantedPartitions resolves the partitions that a request names, each once, topic by topic; what is not there is left out, as Kafka does.
// It is false when there are too many.
func wantedPartitions(img *metadata.Image, req *kmsg.DescribeLogDirsRequest) ([]kafka.TopicPartition, bool) {
	var out []kafka.TopicPartition
	named := map[kafka.TopicPartition]bool{}
	left := partitionsMax
	for i := range req.Topics {
		t := &req.Topics[i]
		if left -= len(t.Partitions); left < 0 {
			return nil, false
		}
		topic, _ := findTopic(img, t.Topic, kafka.TopicID{}, false)
		if topic == nil {
			continue
		}
		for _, p := range t.Partitions {
			if tp := (kafka.TopicPartition{Topic: topic.ID, Partition: p}); !named[tp] {
				named[tp], out = true, append(out, tp)
			}
		}
	}
	return out, true
}

// describeDir adds those of the partitions that this node holds.
func (s *Server) describeDir(img *metadata.Image, wanted []kafka.TopicPartition, dir *kmsg.DescribeLogDirsResponseDir) {
	at := map[kafka.TopicID]int{}
	for _, tp := range wanted {
		st, held := s.cfg.Replicas.Describe(tp)
		topic := img.TopicByID(tp.Topic)
		if !held || topic == nil || topic.State != metadata.StateReady {
			continue
		}
		i, seen := at[tp.Topic]
		if !seen {
			i, at[tp.Topic] = len(dir.Topics), len(dir.Topics)
			out := kmsg.NewDescribeLogDirsResponseDirTopic()
			out.Topic = topic.Name
			dir.Topics = append(dir.Topics, out)
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size, p.OffsetLag = tp.Partition, st.Size, max(0, int64(st.HW-st.End))
		if n := st.RecordIDs; n > 0 {
			p.UnknownTags.Set(wire.TagRecordIDs, binary.BigEndian.AppendUint64(nil, uint64(n)))
		}
		if st.End == kafka.NoOffset {
			p.OffsetLag = int64(kafka.NoOffset) // the log could not be opened
		} else {
			ends := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(st.Start)), uint64(st.HW))
			p.UnknownTags.Set(wire.TagReplicaEnds, binary.BigEndian.AppendUint64(ends, uint64(st.End)))
		}
		dir.Topics[i].Partitions = append(dir.Topics[i].Partitions, p)
	}
}
