package wire

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kversion"
)

// kversions are the oracle's tables of our releases.
var kversions = map[string]*kversion.Versions{
	"2.0": kversion.V2_0_0(), "2.8": kversion.V2_8_0(), "3.9": kversion.V3_9_0(), "4.0": kversion.V4_0_0(), "4.1": kversion.V4_1_0(),
	"4.2": kversion.V4_2_0(), "4.3": kversion.V4_3_0(), "4.4": kversion.V4_4_0(),
}

// withoutZooKeeper are keys that brokers of 3.9 have only without ZooKeeper; kversion's table of 3.9 is of one with it.
var withoutZooKeeper = map[int16]bool{
	KeyDescribeQuorum: true, KeyDescribeTopicPartitions: true, KeyUnregisterBroker: true, KeyAddRaftVoter: true, KeyRemoveRaftVoter: true,
}

func TestCeilingsAreWhatKversionSays(t *testing.T) {
	if len(ceilings) != len(apis) {
		t.Errorf("%d keys have ceilings, %d have versions", len(ceilings), len(apis))
	}
	for _, a := range apis {
		c, ok := ceilings[a.Key]
		if !ok {
			t.Errorf("%s has no ceilings: a cap would hide it in every release", a.Name)
		}
		for i, release := range releases {
			want, known := kversions[release].LookupMaxKeyVersion(a.Key)
			if !known {
				want = none
			}
			if release == "3.9" && withoutZooKeeper[a.Key] {
				continue
			}
			if c[i] != want {
				t.Errorf("%s in %s: %d, kversion says %d", a.Name, release, c[i], want)
			}
		}
	}
}

func TestCapCutsVersionsAndKeys(t *testing.T) {
	capped, err := Cap(APIs(), "2.0")
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[int16]API{}
	for _, a := range capped {
		byKey[a.Key] = a
	}
	for _, absent := range []int16{KeyElectLeaders, KeyDescribeCluster, KeyOffsetForLeaderEpoch} { // the last one is known below our minimum only
		if _, there := byKey[absent]; there {
			t.Errorf("key %d is in 2.0", absent)
		}
	}
	if p := byKey[KeyProduce]; p.Min != 3 || p.Max != 6 || p.AdvertisedMin != 0 {
		t.Errorf("Produce: %+v", p)
	}
	if _, err := Cap(APIs(), "1.1"); !errors.Is(err, ErrUnknownRelease) {
		t.Errorf("1.1: %v", err)
	}
	if newest, err := Cap(APIs(), "4.4"); err != nil || len(newest) != len(apis) {
		t.Errorf("4.4 knows %d keys of %d: %v", len(newest), len(apis), err)
	}
}
