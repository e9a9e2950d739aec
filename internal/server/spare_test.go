package server

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/wire"
)

// transactional is a batch with the transactional bit.
func (b *testBroker) transactional() record.Batch {
	batch := b.newBatch("x")
	batch.SetProducer(7, 0, 0, true)
	return batch
}

// TestSpare_ProduceV12WithoutTransactions: Produce 12 and 13 are advertised, whose clients may begin transactions by publishing, and there
// are no transactions. No client gets into one: transaction.version is not finalised, a transactional id gets no producer id, a batch with
// the bit is refused for good, and plain batches are taken in both versions.
func TestSpare_ProduceV12WithoutTransactions(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	id := c.create("orders", 1)
	versions := ask[*kmsg.ApiVersionsResponse](c, withVersion(request(wire.KeyApiVersions, "", kafka.TopicID{}, nil), 4))
	for _, f := range versions.FinalizedFeatures {
		if f.Name == "transaction.version" {
			t.Errorf("features: %+v", versions.FinalizedFeatures)
		}
	}
	for _, k := range versions.ApiKeys {
		if k.ApiKey == wire.KeyProduce && k.MaxVersion != 13 {
			t.Errorf("Produce is advertised up to %d", k.MaxVersion)
		}
		if k.ApiKey >= 24 && k.ApiKey <= 28 {
			t.Errorf("key %d belongs to transactions and is advertised", k.ApiKey)
		}
	}
	init := kmsg.NewPtrInitProducerIDRequest()
	init.Version, init.TransactionalID = 5, kmsg.StringPtr("tx")
	if code := kafka.ErrorCode(ask[*kmsg.InitProducerIDResponse](c, init).ErrorCode); code == 0 || code.Retriable() {
		t.Errorf("InitProducerId with a transactional id: %v", code)
	}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKey, find.CoordinatorKeys = coordinatorOfTransaction, "tx", []string{"tx"}
	for version := int16(1); version <= 6; version++ {
		if code := firstError(ask[kmsg.Response](c, withVersion(find, version))); code == 0 || code.Retriable() {
			t.Errorf("FindCoordinator %d for a transaction: %v", version, code)
		}
	}
	for version := int16(3); version <= 13; version++ {
		req := withVersion(newProduce("orders", 0, b.transactional()), version)
		req.TransactionID, req.Topics[0].TopicID = kmsg.StringPtr("tx"), id
		if code := kafka.ErrorCode(c.publish(req).ErrorCode); code != kafka.InvalidRecord || code.Retriable() {
			t.Errorf("a transactional batch in version %d: %v", version, code)
		}
	}
	for i, version := range []int16{12, 13} {
		req := withVersion(newProduce("orders", 0, b.numbered(9, int32(i))), version)
		req.Topics[0].TopicID = id
		if p := c.publish(req); p.ErrorCode != 0 || p.BaseOffset != int64(i) {
			t.Errorf("a plain batch in version %d: %+v", version, p)
		}
	}
	b.refusesTransactionalClient()
}

// refusesTransactionalClient has an unmodified client begin a transaction: it is told that it cannot, and does not try for ever.
func (b *testBroker) refusesTransactionalClient() {
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic("orders"))
	must(b.t, err)
	defer cl.Close()
	if err = cl.BeginTransaction(); err == nil {
		err = cl.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr()
	}
	if err == nil || !strings.Contains(err.Error(), "UNSUPPORTED_VERSION") {
		b.t.Errorf("the client's error is %v, want the broker's, at once", err)
	}
}
