package group

import (
	"reflect"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

// TestReport_Bytes: a report comes back as it was sent, and no part of one is taken for a whole.
func TestReport_Bytes(t *testing.T) {
	facts := BacklogFacts{Committed: 2, Known: true, Start: 5, End: 9, Unread: true, Oldest: time.Minute, Expires: true}
	judged := Judge(facts)
	facts.Unread = false // it decides on the lag, and is not told
	r := Report{Group: "g", Members: 3, State: LosingData, Undo: []StoredOffset{{Topic: "t", Partition: 1, Offset: kafka.NoOffset}}, Partitions: []PartitionReport{
		{Topic: "t", ID: kafka.TopicID{7}, Partition: 1, BacklogFacts: facts, Backlog: judged},
	}}
	raw := r.Append(nil)
	var back Report
	if err := back.Decode(raw); err != nil || !reflect.DeepEqual(r, back) {
		t.Errorf("%+v became %+v: %v", r, back, err)
	}
	for n := range raw {
		if new(Report).Decode(raw[:n]) == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(raw))
		}
	}
}
