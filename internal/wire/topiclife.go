package wire

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// What Kafka's requests about topics cannot say of a topic's life: its version, and the trash. docs/formats/topic-requests.md has the bytes.
const (
	// TagTopicLife, in a Metadata request, is one byte of Tell bits; in each topic of the answer, a TopicLife.
	TagTopicLife uint32 = 10_004
	// TagTrash, in a Metadata answer, is a Trash.
	TagTrash uint32 = 10_005
	// TagDeletion, in a topic of DeleteTopics, is the version (8 bytes, big endian) without which nothing is deleted; 0 is any. In the topic of
	// the answer it is until when the topic can be restored, as Unix milliseconds; 0: it cannot.
	TagDeletion uint32 = 10_006
	// TagRestoration, in a topic of CreateTopics, is a Restoration; in the topic of the answer, the topic's version (8 bytes, big endian).
	TagRestoration uint32 = 10_007
	// TagExpected, in a topic of CreatePartitions and a topic of IncrementalAlterConfigs, is the version (8 bytes, big endian) without which nothing
	// is changed; 0 is any. In the answer it is the version that the topic has then.
	TagExpected uint32 = 10_008
)

// Expected is the version that TagExpected demands of a topic, 0 without the tag.
func Expected(tags *kmsg.Tags) (version int64, there bool, err error) {
	b, there := Tagged(tags, TagExpected)
	if there {
		version, err = ReadNumberTag(b)
	}
	return version, there, err
}

// What a Metadata request can ask for in TagTopicLife.
const (
	TellLife  = 1 << 0
	TellTrash = 1 << 1
)

// TrashShownMax is how many deleted topics one answer lists (I14): 10,000 lines of some 100 bytes.
const TrashShownMax = 10_000

// TopicLife is what describe shows of a topic besides its partitions and configs (R8).
type TopicLife struct {
	Version   int64
	CreatedMs int64
	Owner     string
}

// Restoration names the topic in the trash that a CreateTopics brings back, by id or, without one, by the name it had: the one deleted last.
type Restoration struct {
	ID   kafka.TopicID
	Name string
}

// Trash is what was deleted and is not gone yet: Total topics, of which at most TrashShownMax are listed.
type Trash struct {
	Total  int32
	Topics []TrashedTopic
}

// TrashedTopic is one of them. Purging says that it cannot be restored any more and that Pending replicas are still to be removed.
type TrashedTopic struct {
	ID         kafka.TopicID
	Name       string
	Version    int64
	Partitions int32
	DeletedMs  int64
	PurgeAtMs  int64
	DeletedBy  string
	Purging    bool
	Pending    int32
}

// Tagged is the value of one of a message's unknown tags, and whether it is there.
func Tagged(tags *kmsg.Tags, tag uint32) (value []byte, there bool) {
	if tags == nil {
		return nil, false
	}
	tags.Each(func(t uint32, v []byte) {
		if t == tag {
			value, there = v, true
		}
	})
	return value, there
}

// NumberTag is the value of a tag that is one number.
func NumberTag(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// ReadNumberTag reads what NumberTag made. A number below 0 is malformed.
func ReadNumberTag(b []byte) (int64, error) {
	d := NewDecoder(b)
	n := d.Int64()
	if n < 0 {
		d.Fail(ErrMalformed)
	}
	return n, d.Done()
}

// Append appends the message under its tag's number.
func (l TopicLife) Append(e *Encoder) {
	e.Header(uint16(TagTopicLife), 0)
	e.Int64(l.Version)
	e.Int64(l.CreatedMs)
	e.String(l.Owner)
	e.NoTags()
}

// DecodeTopicLife reads what Append wrote.
func DecodeTopicLife(b []byte) (l TopicLife, err error) {
	d := NewDecoder(b)
	d.ExpectHeader(uint16(TagTopicLife), 0)
	l = TopicLife{Version: d.Int64(), CreatedMs: d.Int64(), Owner: d.String()}
	d.Tags(nil)
	return l, d.Done()
}

// Append appends the message under its tag's number.
func (v Restoration) Append(e *Encoder) {
	e.Header(uint16(TagRestoration), 0)
	e.ID(v.ID)
	e.String(v.Name)
	e.NoTags()
}

// DecodeRestoration reads what Append wrote. One that names a topic twice, or not at all, is malformed.
func DecodeRestoration(b []byte) (v Restoration, err error) {
	d := NewDecoder(b)
	d.ExpectHeader(uint16(TagRestoration), 0)
	v = Restoration{ID: d.ID(), Name: d.String()}
	if v.ID.IsZero() == (v.Name == "") {
		d.Fail(ErrMalformed)
	}
	d.Tags(nil)
	return v, d.Done()
}

// Append appends the message under its tag's number.
func (v Trash) Append(e *Encoder) {
	e.Header(uint16(TagTrash), 0)
	e.Int32(v.Total)
	AppendArray(e, v.Topics, func(e *Encoder, t TrashedTopic) {
		e.ID(t.ID)
		e.String(t.Name)
		e.Int64(t.Version)
		e.Int32(t.Partitions)
		e.Int64(t.DeletedMs)
		e.Int64(t.PurgeAtMs)
		e.String(t.DeletedBy)
		e.Bool(t.Purging)
		e.Int32(t.Pending)
	})
	e.NoTags()
}

// trashedBytesMin is the shortest TrashedTopic: empty strings.
const trashedBytesMin = 16 + 1 + 8 + 4 + 8 + 8 + 1 + 1 + 4

// DecodeTrash reads what Append wrote.
func DecodeTrash(b []byte) (v Trash, err error) {
	d := NewDecoder(b)
	d.ExpectHeader(uint16(TagTrash), 0)
	v.Total = d.Int32()
	v.Topics = ReadArray(d, trashedBytesMin, func(d *Decoder) TrashedTopic {
		return TrashedTopic{
			ID: d.ID(), Name: d.String(), Version: d.Int64(), Partitions: d.Int32(), DeletedMs: d.Int64(), PurgeAtMs: d.Int64(),
			DeletedBy: d.String(), Purging: d.Bool(), Pending: d.Int32(),
		}
	})
	d.Tags(nil)
	return v, d.Done()
}
