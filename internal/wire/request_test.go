package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// The scan and kmsg must agree on every layout: what one accepts the other reads to the last byte.
func TestScanAgreesWithKmsgOnEveryVersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	eachVersion(func(a API, v int16) {
		for range 50 {
			body := randomRequest(rng, a.Key, v).AppendTo(nil)
			req := kmsg.RequestForKey(a.Key)
			req.SetVersion(v)
			if err := DecodeRequest(req, body); err != nil {
				t.Fatalf("%s %d: %v\n%x", a.Name, v, err, body)
			}
			if again := req.AppendTo(nil); !bytes.Equal(again, body) {
				t.Fatalf("%s %d: decoded to another request", a.Name, v)
			}
			if err := DecodeRequest(req, append(bytes.Clone(body), make([]byte, strayBytes(a.Key, v)+1)...)); !errors.Is(err, ErrTrailing) {
				t.Fatalf("K14 %s %d with a byte behind: %v", a.Name, v, err)
			}
			for n := range len(body) {
				if err := DecodeRequest(req, body[:n]); !errors.Is(err, ErrShort) {
					t.Fatalf("K13 %s %d cut at %d of %d: %v", a.Name, v, n, len(body), err)
				}
			}
		}
	})
}

// TestStrayBytesOfLibrdkafka decodes what librdkafka sends as "all topics" in Metadata v13: three bytes stand behind the request.
func TestStrayBytesOfLibrdkafka(t *testing.T) {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 13
	if err := DecodeRequest(req, []byte{0, 0, 0, 0, 1, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if req.Topics != nil {
		t.Errorf("topics %v, want null: all of them", req.Topics)
	}
	old := kmsg.NewPtrMetadataRequest()
	old.Version = 1
	if err := DecodeRequest(old, []byte{0xff, 0xff, 0xff, 0xff, 0}); !errors.Is(err, ErrTrailing) {
		t.Errorf("K14 version 1: %v", err)
	}
}

func TestUnknownTagsAreAccepted(t *testing.T) {
	eachVersion(func(a API, v int16) {
		req := kmsg.RequestForKey(a.Key)
		req.SetVersion(v)
		if !req.IsFlexible() {
			return
		}
		body := req.AppendTo(nil)
		body = append(body[:len(body)-1], 1, 100, 3, 'a', 'b', 'c') // the last byte is the empty tag section
		if err := DecodeRequest(req, body); err != nil {
			t.Errorf("%s %d: %v", a.Name, v, err)
		}
	})
}

// TestC084_K15_HugeLengthsAllocateNothing puts MaxInt32 into every place where an array length can be.
func TestC084_K15_HugeLengthsAllocateNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	eachVersion(func(a API, v int16) {
		body := randomRequest(rng, a.Key, v).AppendTo(nil)
		for at := range len(body) {
			for _, lie := range [][]byte{{0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff, 0x0f}, {0x80, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff, 0x7f}} {
				hostile := append(bytes.Clone(body[:at]), lie...)
				req := kmsg.RequestForKey(a.Key)
				req.SetVersion(v)
				if err := DecodeRequest(req, hostile); err != nil && !isParseError(err) {
					t.Fatalf("%s %d at %d: %v", a.Name, v, at, err)
				}
			}
		}
	})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("allocated %d MiB", n>>20)
	}
	req := kmsg.NewPtrMetadataRequest()
	if err := DecodeRequest(req, []byte{0x7f, 0xff, 0xff, 0xff}); !errors.Is(err, ErrShort) {
		t.Errorf("Metadata: %v", err)
	}
}

func TestK17_NestedEmptyArraysAreOverBudget(t *testing.T) {
	// 10,000 topics with 10,000 replica assignments each, of 5 bytes: 500 MB. The scan gives up long before the end, so a tenth of
	// the bytes shows the same.
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	for range 1000 {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.ReplicaAssignment = make([]kmsg.CreateTopicsRequestTopicReplicaAssignment, 1000)
		req.Topics = append(req.Topics, rt)
	}
	body := req.AppendTo(nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := DecodeRequest(kmsg.RequestForKey(KeyCreateTopics), body)
	if err == nil {
		t.Fatal("version 0 has another layout")
	}
	got := kmsg.NewPtrCreateTopicsRequest()
	got.Version = 7
	err = DecodeRequest(got, body)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrBudget) {
		t.Errorf("%v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("allocated %d KiB", n>>10)
	}
	names := kmsg.NewPtrMetadataRequest()
	names.Version = 1
	for range 1_000_000 {
		names.Topics = append(names.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr("t")})
	}
	again := kmsg.NewPtrMetadataRequest()
	again.Version = 1
	if err := DecodeRequest(again, names.AppendTo(nil)); !errors.Is(err, ErrBudget) {
		t.Errorf("K37 a million topics: %v", err)
	}
}

// What the budget is estimated with must not be below what kmsg really allocates.
func TestStructCostIsAboveEveryStruct(t *testing.T) {
	var walk func(path string, ty reflect.Type)
	walk = func(path string, ty reflect.Type) {
		switch ty.Kind() {
		case reflect.Slice:
			limit := int64(structCost)
			if ty.Elem().Kind() != reflect.Struct {
				limit = primitiveCost
			}
			if size := int64(ty.Elem().Size()); size > limit {
				t.Errorf("%s: %d bytes an element, estimated %d", path, size, limit)
			}
			walk(path, ty.Elem())
		case reflect.Struct:
			if ty == reflect.TypeFor[kmsg.Tags]() {
				return
			}
			for i := range ty.NumField() {
				walk(path+"."+ty.Field(i).Name, ty.Field(i).Type)
			}
		case reflect.Pointer:
			walk(path, ty.Elem())
		}
	}
	for _, a := range APIs() {
		walk(a.Name, reflect.TypeOf(kmsg.RequestForKey(a.Key)).Elem())
	}
}

func TestRecordsOfProduceAreViews(t *testing.T) {
	req := kmsg.NewPtrProduceRequest()
	req.Version = 9
	rt := kmsg.NewProduceRequestTopic()
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = bytes.Repeat([]byte("r"), 1000)
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	body := req.AppendTo(nil)
	got := kmsg.NewPtrProduceRequest()
	got.Version = 9
	if err := DecodeRequest(got, body); err != nil {
		t.Fatal(err)
	}
	at := bytes.IndexByte(body, 'r')
	body[at] = 'R'
	if got.Topics[0].Partitions[0].Records[0] != 'R' {
		t.Error("the records were copied")
	}
}

func TestK10_RefuseOldAnswersInTheOldLayout(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, a := range APIs() {
		for v := int16(0); v < a.Min; v++ {
			for range 20 {
				req := randomRequest(rng, a.Key, v)
				p, isProduce := req.(*kmsg.ProduceRequest)
				resp, err := RefuseOld(RequestHeader{Key: a.Key, Version: v}, req.AppendTo(nil))
				if err != nil {
					t.Fatalf("%s %d: %v", a.Name, v, err)
				}
				if isProduce && p.Acks == 0 {
					if resp != nil {
						t.Error("an answer to acks=0")
					}
					continue
				}
				got := req.ResponseKind()
				if err := got.ReadFrom(resp.AppendTo(nil)); err != nil {
					t.Fatalf("%s %d: %v", a.Name, v, err)
				}
				checkRefused(t, req, got)
			}
		}
	}
}

// checkRefused wants code 35 for every partition that was asked for.
func checkRefused(t *testing.T, req kmsg.Request, resp kmsg.Response) {
	t.Helper()
	asked, answered := reflect.ValueOf(req).Elem().FieldByName("Topics"), reflect.ValueOf(resp).Elem().FieldByName("Topics")
	if asked.Len() != answered.Len() {
		t.Fatalf("%d topics answered of %d", answered.Len(), asked.Len())
	}
	for i := range asked.Len() {
		if asked.Index(i).FieldByName("Topic").String() != answered.Index(i).FieldByName("Topic").String() {
			t.Error("another topic")
		}
		ps, rs := asked.Index(i).FieldByName("Partitions"), answered.Index(i).FieldByName("Partitions")
		if ps.Len() != rs.Len() {
			t.Fatalf("%d partitions answered of %d", rs.Len(), ps.Len())
		}
		for j := range ps.Len() {
			r, p := rs.Index(j), ps.Index(j)
			if p.Kind() == reflect.Struct {
				p = p.FieldByName("Partition")
			}
			if r.FieldByName("Partition").Int() != p.Int() ||
				r.FieldByName("ErrorCode").Int() != int64(kafka.UnsupportedVersion) {
				t.Errorf("partition %d: %+v", j, r.Interface())
			}
		}
	}
}

func TestK9_RefuseApiVersions(t *testing.T) {
	a, _ := Lookup(KeyApiVersions)
	got := AppendResponse(nil, RefuseApiVersions(a), 5)
	want := []byte{0, 0, 0, 16, 0, 0, 0, 5, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5}
	if !bytes.Equal(got, want) {
		t.Errorf("%x\nwant %x", got, want)
	}
}

func TestRefuseOldRefusesHostileBodies(t *testing.T) {
	if _, err := RefuseOld(RequestHeader{Key: KeyProduce, Version: 1}, binary.BigEndian.AppendUint32(nil, 1<<31-1)); !isParseError(err) {
		t.Error(err)
	}
	if _, err := RefuseOld(RequestHeader{Key: 999}, nil); err != ErrUnknownKey {
		t.Error(err)
	}
	if err := DecodeRequest(kmsg.NewPtrShareFetchRequest(), nil); err != ErrUnknownKey || strings.TrimSpace(err.Error()) == "" {
		t.Error(err)
	}
}
