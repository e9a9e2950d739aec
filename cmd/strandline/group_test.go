package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/internal/group"
)

// R48, R176, R177: a member without partitions is shown as idle; what is not known is shown as such, never as 0 (C062).
func TestGroupDescribe_IdleMembersAndUnknownNumbers(t *testing.T) {
	five, seven, two, three := int64(5), int64(7), int64(2), int64(3)
	oldest, loss := int64(90_000), int64(3*24*3_600_000+5)
	instance := "desk-1"
	d := describedGroup{
		Group: "billing", State: "Stable", ProtocolType: "consumer", Protocol: "range", Coordinator: 1, Lag: &two, Unknown: 1, Trend: &three, Backlog: "falling behind",
		Members: []describedMember{
			{MemberID: "a-1", ClientID: "a", Host: "10.0.0.1", InstanceID: &instance, Partitions: 1},
			{MemberID: "b-2", ClientID: "b", Host: "10.0.0.2"},
		},
		Partitions: []describedLag{
			{Topic: "orders", Partition: 0, Committed: &five, End: &seven, Lag: &two, MemberID: "a-1", describedBacklog: &describedBacklog{
				State: "falling behind", Rule: "the lag grew by 2 records in 40s", OldestMs: &oldest, TimeToLossMs: &loss, Trend: &three,
			}},
			{Topic: "orders", Partition: 1, Error: "LEADER_NOT_AVAILABLE"},
		},
	}
	var out strings.Builder
	if err := (printer{w: &out}).printGroup(d, false); err != nil {
		t.Fatal(err)
	}
	want := `group billing, Stable, protocol consumer/range, coordinator 1, 2 members, lag at least 2, 1 of 2 partitions are not known (+3/min), falling behind

MEMBER  INSTANCE  CLIENT  HOST      PARTITIONS
a-1     desk-1    a       10.0.0.1  1
b-2     -         b       10.0.0.2  idle

TOPIC   PARTITION  COMMITTED  END  LAG                   TREND   OLDEST  TIME TO LOSS  STATE           MEMBER
orders  0          5          7    2                     +3/min  1m30s   3d            falling behind  a-1
orders  1          -          -    LEADER_NOT_AVAILABLE  -       -       -             -               -

PARTITION  WHY
orders-0   the lag grew by 2 records in 40s
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	lag := describeLag(kadm.GroupMemberLag{
		Topic: "orders", Commit: kadm.Offset{At: -1}, End: kadm.ListedOffset{Err: kerr.LeaderNotAvailable}, Err: kerr.LeaderNotAvailable, Lag: -1,
	})
	if lag.Committed != nil || lag.End != nil || lag.Lag != nil || lag.Error == "" {
		t.Errorf("%+v", lag)
	}
	if sum, unknown := lagOf([]describedLag{lag}); sum != nil || unknown != 1 {
		t.Errorf("the sum of what is not known is %d", *sum)
	}
	if sum, unknown := lagOf(d.Partitions); sum == nil || *sum != 2 || unknown != 1 {
		t.Errorf("the sum of what is known is %v", sum)
	}
	if sum, unknown := lagOf(nil); sum == nil || *sum != 0 || unknown != 0 {
		t.Errorf("the sum of nothing is %v", sum)
	}
}

// TestC117_GapsAreNoLag: what compaction has removed behind a group is no lag of it, though its end lies behind; the coordinator knows.
func TestC117_GapsAreNoLag(t *testing.T) {
	row := describeLag(kadm.GroupMemberLag{Topic: "state", Commit: kadm.Offset{At: 20}, End: kadm.ListedOffset{Offset: 30}, Lag: 10})
	p := &group.PartitionReport{
		Topic: "state", BacklogFacts: group.BacklogFacts{Committed: 20, Known: true, End: 30},
		Backlog: group.Judge(group.BacklogFacts{Committed: 20, Known: true, End: 30}),
	}
	row.take(p)
	if *row.Lag != 0 || *row.End != 30 || *row.Committed != 20 || row.State != group.CaughtUp.String() {
		t.Errorf("%+v", row)
	}
	row = describeLag(kadm.GroupMemberLag{Topic: "state", Commit: kadm.Offset{At: 20}, End: kadm.ListedOffset{Offset: 30}, Lag: 10})
	row.take(&group.PartitionReport{Topic: "state", Backlog: group.Judge(group.BacklogFacts{Committed: 20})})
	if *row.Lag != 10 || row.State != group.BacklogUnknown.String() {
		t.Errorf("the coordinator does not know: %+v", row)
	}
}
