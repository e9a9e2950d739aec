package server

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// releases are the values of the setting, with what kversion says about each.
var releases = map[string]*kversion.Versions{
	"2.0": kversion.V2_0_0(), "2.8": kversion.V2_8_0(), "3.9": kversion.V3_9_0(), "4.0": kversion.V4_0_0(), "4.1": kversion.V4_1_0(),
	"4.2": kversion.V4_2_0(), "4.3": kversion.V4_3_0(), "4.4": kversion.V4_4_0(),
}

// newCappedBroker starts a broker that speaks like a release.
func newCappedBroker(t *testing.T, release string) *testBroker {
	return newTestBroker(t, testOptions{broker: map[string]string{"strandline.protocol.cap": release}})
}

func TestCap_TheSettingHasTheReleasesOfTheTable(t *testing.T) {
	want := append([]string{config.NoProtocolCap}, wire.Releases()...)
	if have := config.Lookup(config.ScopeBroker, "strandline.protocol.cap").Enum; !slices.Equal(have, want) {
		t.Errorf("the setting accepts %v, the table has %v", have, want)
	}
	if len(releases) != len(wire.Releases()) {
		t.Errorf("this test knows %d releases, the table %d", len(releases), len(wire.Releases()))
	}
}

// withoutZooKeeper are the keys that brokers of 3.9 have only without ZooKeeper.
var withoutZooKeeper = []int16{
	wire.KeyDescribeQuorum, wire.KeyDescribeTopicPartitions, wire.KeyUnregisterBroker, wire.KeyAddRaftVoter, wire.KeyRemoveRaftVoter,
}

// What a capped broker advertises is never above what that release has, by kversion, and lacks nothing that both have.
func TestCap_AdvertisesNoMoreThanTheRelease(t *testing.T) {
	for release, versions := range releases {
		b := newCappedBroker(t, release)
		resp := ask[*kmsg.ApiVersionsResponse](b.dial(), withVersion(request(wire.KeyApiVersions, "", kafka.TopicID{}, nil), 0))
		advertised := map[int16]bool{}
		for _, k := range resp.ApiKeys {
			advertised[k.ApiKey] = true
			own, _ := wire.Lookup(k.ApiKey)
			highest, known := versions.LookupMaxKeyVersion(k.ApiKey)
			if release == "3.9" && slices.Contains(withoutZooKeeper, k.ApiKey) {
				continue // kversion's 3.9 is one with ZooKeeper
			}
			if !known || k.MaxVersion != min(own.Max, highest) || k.MinVersion != own.AdvertisedMin {
				t.Errorf("%s: %s is advertised as %d-%d; the release has up to %d (known: %v), we %d-%d",
					release, own.Name, k.MinVersion, k.MaxVersion, highest, known, own.Min, own.Max)
			}
		}
		for _, own := range served() {
			if highest, known := versions.LookupMaxKeyVersion(own.Key); known && highest >= own.Min && !advertised[own.Key] {
				t.Errorf("%s: %s is not advertised", release, own.Name)
			}
		}
	}
}

// What is not advertised is not answered either: every key is asked in the version above the cap's.
func TestCap_RefusesWhatItHides(t *testing.T) {
	b := newCappedBroker(t, "2.0")
	for _, own := range served() {
		a, known := b.server.api(own.Key)
		if own.Key == wire.KeyApiVersions || known && a.Max == own.Max {
			continue
		}
		above := own.Min
		if known {
			above = a.Max + 1
		}
		c := b.dial()
		c.send(withVersion(request(own.Key, "none", kafka.TopicID{}, nil), above))
		c.closed()
	}
	// Below our minimum the key is refused in its layout, if the release has it.
	c := b.dial()
	if code := firstError(ask[kmsg.Response](c, withVersion(request(wire.KeyFetch, "none", kafka.TopicID{}, nil), 3))); code != kafka.UnsupportedVersion {
		t.Errorf("Fetch 3: %v", code)
	}
	// OffsetForLeaderEpoch is 0-1 in 2.0 and begins at 2 here.
	c.send(withVersion(request(wire.KeyOffsetForLeaderEpoch, "none", kafka.TopicID{}, nil), 1))
	c.closed()
}

// K9: ApiVersions above the cap is answered as above any maximum: error 35 in version 0's layout, with the capped range.
func TestCap_ApiVersionsFromTheFuture(t *testing.T) {
	c := newCappedBroker(t, "2.0").dial()
	c.send(withVersion(request(wire.KeyApiVersions, "", kafka.TopicID{}, nil), 3))
	resp := c.read(kmsg.NewPtrApiVersionsRequest(), 0).(*kmsg.ApiVersionsResponse)
	if resp.ErrorCode != int16(kafka.UnsupportedVersion) || len(resp.ApiKeys) != 1 || resp.ApiKeys[0].MaxVersion != 2 {
		t.Errorf("%+v", resp)
	}
	again := ask[*kmsg.ApiVersionsResponse](c, withVersion(request(wire.KeyApiVersions, "", kafka.TopicID{}, nil), 2))
	if again.ErrorCode != 0 || len(again.ApiKeys) < 15 {
		t.Errorf("%+v", again)
	}
}

// An unmodified client publishes, with idempotence, and reads back, in the versions of each release.
func TestCap_AClientWorksWithEveryRelease(t *testing.T) {
	for _, release := range wire.Releases() {
		b := newCappedBroker(t, release)
		if code := firstError(ask[kmsg.Response](b.dial(), withVersion(newCreate("orders", 1), 3))); code != 0 {
			t.Fatalf("%s: create: %v", release, code)
		}
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchMaxWait(100*time.Millisecond))
		must(t, err)
		for i := range 10 {
			r := &kgo.Record{Topic: "orders", Value: []byte{byte('0' + i)}, Timestamp: b.wall.Now()}
			if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
				t.Fatalf("%s: %v", release, err)
			}
		}
		read := ""
		for len(read) < 10 {
			fetches := cl.PollFetches(ctx)
			must(t, fetches.Err())
			fetches.EachRecord(func(r *kgo.Record) { read += string(r.Value) })
		}
		if read != "0123456789" {
			t.Errorf("%s: read %s", release, read)
		}
		cl.Close()
		cancel()
	}
}
