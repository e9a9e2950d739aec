package wire

import "strandline.dev/internal/kafka"

const (
	outcomeType    = 10010
	outcomeVersion = 0
	// tagDiskLimit is the number of the tagged field that says DiskLimit; it has no value.
	tagDiskLimit = 0
	// repeatBytes is the size of one Repeat.
	repeatBytes = 13
)

// Outcome is what became of one partition's part of a publish, as far as the answer of the protocol cannot say it. It travels under TagOutcome;
// golden bytes are in TestOutcome_Bytes.
type Outcome struct {
	// LeaderEpoch is the epoch of the leader that judged the batch, or NoEpoch.
	LeaderEpoch kafka.LeaderEpoch
	// Unknown comes with an error: the records may be stored all the same.
	Unknown bool
	// DedupOff says that the batch was refused because its record ids would not be remembered.
	DedupOff bool
	// DiskLimit says that the batch was refused because the leader's disk is full or its limit is reached.
	DiskLimit bool
	// Repeats are the records that were stored before under their record ids, by offset delta.
	Repeats []Repeat
}

// Repeat is a record that was stored before under its record id.
type Repeat struct {
	Delta int32
	// Offset is where it is, or NoOffset when that is earlier in the same batch.
	Offset kafka.Offset
	// OtherContent says that what is stored has another key or value: the id was used for two things.
	OtherContent bool
}

// Append appends the message to b.
func (o *Outcome) Append(b []byte) []byte {
	e := Encoder{B: b}
	e.Header(outcomeType, outcomeVersion)
	e.Int32(int32(o.LeaderEpoch))
	e.Bool(o.Unknown)
	e.Bool(o.DedupOff)
	AppendArray(&e, o.Repeats, func(e *Encoder, r Repeat) {
		e.Int32(r.Delta)
		e.Int64(int64(r.Offset))
		e.Bool(r.OtherContent)
	})
	if o.DiskLimit {
		e.Tags(Tag{Number: tagDiskLimit})
	} else {
		e.NoTags()
	}
	return e.B
}

// Decode reads one message. Errors wrap ErrMalformed or ErrShort.
func (o *Outcome) Decode(b []byte) error {
	d := NewDecoder(b)
	d.ExpectHeader(outcomeType, outcomeVersion)
	*o = Outcome{LeaderEpoch: kafka.LeaderEpoch(d.Int32()), Unknown: d.Bool(), DedupOff: d.Bool()}
	o.Repeats = ReadArray(d, repeatBytes, func(d *Decoder) Repeat {
		return Repeat{Delta: d.Int32(), Offset: kafka.Offset(d.Int64()), OtherContent: d.Bool()}
	})
	d.Tags(func(t Tag) { o.DiskLimit = o.DiskLimit || t.Number == tagDiskLimit })
	return d.Done()
}
