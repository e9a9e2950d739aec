package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// C091: while the disk syncs nothing, producers that send without end get pipelineMax publishes into the log each, and then the broker
// reads no more from them; its memory stays within the budget, others are answered, and when the disk goes on everything is acknowledged.
func TestC091_AStuckDiskStopsReadingNotTheNode(t *testing.T) {
	const producers, publishes, memory = 8, 100, 4 << 20
	b := newTestBroker(t, testOptions{limits: Limits{Memory: memory}})
	other := b.dial()
	other.create("stuck", 1)
	goOn := make(chan struct{})
	b.fs.Hook(func(op systest.Op) error {
		if (op.Kind == systest.OpSync && strings.Contains(op.Name, "/topics/")) || op.Kind == systest.OpSyncAll {
			<-goOn
		}
		return nil
	})
	req := newProduce("stuck", 0, b.newBatch(strings.Repeat("x", 128<<10)))
	req.TimeoutMillis = 60_000
	var clients []*testClient
	var sending sync.WaitGroup
	for range producers {
		c := b.dial()
		clients = append(clients, c)
		var frames []byte
		for i := range publishes {
			frames = append(frames, c.frame(req, int32(i))...)
		}
		sending.Go(func() { c.write(frames) })
	}
	within := func(what string) {
		t.Helper()
		if used := b.server.budget.Used() + b.server.small.Used(); used > memory {
			t.Errorf("%s: %d bytes of requests are held, want at most %d", what, used, memory)
		}
	}
	eventually(t, "every pipeline is full", func() bool {
		within("on the way")
		return b.status("stuck", 0).End == producers*pipelineMax
	})
	for range 50 { // time for one more to slip in
		if got := ask[*kmsg.MetadataResponse](other, newMetadata(12, "stuck")); got.Topics[0].ErrorCode != 0 {
			t.Errorf("metadata: %d", got.Topics[0].ErrorCode)
		}
	}
	within("when full")
	if st := b.status("stuck", 0); st.End != producers*pipelineMax || st.HW != 0 {
		t.Errorf("the log ends at %d with watermark %d, want %d and 0", st.End, st.HW, producers*pipelineMax)
	}
	close(goOn)
	for _, c := range clients {
		last := int64(-1)
		for i := range publishes {
			got := c.read(req, int32(i)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
			if got.ErrorCode != 0 || got.BaseOffset <= last {
				t.Fatalf("publish %d: %v at %d, after %d", i, kafka.ErrorCode(got.ErrorCode), got.BaseOffset, last)
			}
			last = got.BaseOffset
		}
	}
	sending.Wait()
	eventually(t, "the memory is given back", func() bool { return b.server.budget.Used()+b.server.small.Used() == 0 })
	if end := b.status("stuck", 0).End; end != producers*publishes {
		t.Errorf("the log ends at %d, want %d", end, producers*publishes)
	}
}

// C093: ten thousand sessions that one host opens take no other host's session, nor the room for new ones.
func TestC093_OneHostsSessionsLeaveOthersTheirs(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	b.dial().create("shared", 1)
	fetch := func(host, client string, id, epoch int32) *kmsg.FetchResponse {
		t.Helper()
		f := newFetch("shared", 0, 0)
		f.SessionID, f.SessionEpoch = id, epoch
		if epoch != sessionOpen {
			f.Topics = nil
		}
		r, err := Await(context.Background(), b.server.Do(context.Background(), &Call{Request: f, ClientID: client, host: host, Received: time.Now()}))
		must(t, err)
		resp := *r.Response.(*kmsg.FetchResponse)
		if r.Release != nil {
			r.Release()
		}
		return &resp
	}
	var others []int32
	for i := range 100 {
		others = append(others, fetch("other", fmt.Sprint(i), 0, sessionOpen).SessionID)
	}
	granted := 0
	for i := range 10_000 {
		if r := fetch("greedy", fmt.Sprint(i), 0, sessionOpen); r.ErrorCode != 0 {
			t.Fatalf("the greedy host's fetch %d: %d; without a session it is slower, not refused", i, r.ErrorCode)
		} else if r.SessionID != 0 {
			granted++
		}
	}
	if granted != sessionShareMax {
		t.Errorf("one host has %d sessions, want %d", granted, sessionShareMax)
	}
	for i, id := range others {
		if r := fetch("other", fmt.Sprint(i), id, 1); id == 0 || r.ErrorCode != 0 || r.SessionID != id {
			t.Errorf("session %d of another host: error %d", i, r.ErrorCode)
		}
	}
	if fetch("third", "c", 0, sessionOpen).SessionID == 0 {
		t.Error("a third host gets no session")
	}
}

// C093: with room for one record an answer, each of 50 partitions is served within 50 answers, though each has more.
func TestC093_EveryPartitionIsServedInTurn(t *testing.T) {
	const partitions, records = 50, 3
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("turns", partitions)
	for p := range int32(partitions) {
		for range records {
			if got := c.publish(newProduce("turns", p, b.newBatch("x"))); got.ErrorCode != 0 {
				t.Fatal(kafka.ErrorCode(got.ErrorCode))
			}
		}
	}
	f := kmsg.NewPtrFetchRequest()
	f.Version, f.MaxBytes, f.MinBytes, f.SessionEpoch = 12, 1, 1, sessionOpen
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = "turns"
	for p := range int32(partitions) {
		topic.Partitions = append(topic.Partitions, newFetchPartition(p, 0))
	}
	f.Topics = append(f.Topics, topic)
	for round := range int64(records) {
		served := map[int32]bool{}
		for range partitions {
			resp := ask[*kmsg.FetchResponse](c, f)
			f.SessionID, f.SessionEpoch, f.Topics = resp.SessionID, nextEpoch(f.SessionEpoch), nil
			for _, p := range resp.Topics[0].Partitions {
				if len(p.RecordBatches) == 0 {
					continue
				}
				served[p.Partition] = true
				next := newFetch("turns", p.Partition, round+1)
				f.Topics = next.Topics
			}
		}
		if len(served) != partitions {
			t.Errorf("round %d: %d partitions were served in %d answers", round, len(served), partitions)
		}
	}
}
