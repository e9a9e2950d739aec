package wire

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// RefuseOld decodes body, a request of a version below our minimum, and returns the answer UNSUPPORTED_VERSION in that version's own
// layout. A nil response without an error means that the client expects no answer (Produce with acks=0): the connection is to be
// closed so that it notices. Errors: those of DecodeRequest; ErrVersionTooOld for a key whose old layout we do not know.
func RefuseOld(h RequestHeader, body []byte) (kmsg.Response, error) {
	req := kmsg.RequestForKey(h.Key)
	if req == nil {
		return nil, ErrUnknownKey
	}
	req.SetVersion(h.Version)
	if err := DecodeRequest(req, body); err != nil {
		return nil, err
	}
	switch req := req.(type) {
	case *kmsg.ProduceRequest:
		if req.Acks == 0 {
			return nil, nil
		}
		return refuseProduce(req), nil
	case *kmsg.FetchRequest:
		return refuseFetch(req), nil
	case *kmsg.ListOffsetsRequest:
		return refuseListOffsets(req), nil
	case *kmsg.OffsetFetchRequest:
		return refuseOffsetFetch(req), nil
	case *kmsg.OffsetForLeaderEpochRequest:
		return refuseOffsetForLeaderEpoch(req), nil
	}
	return nil, ErrVersionTooOld
}

// RefuseApiVersions returns the answer to an ApiVersions request above our maximum: version 0's layout, UNSUPPORTED_VERSION and our
// range, which is that of a, the row of ApiVersions (KIP-511). The client tries again within that range.
func RefuseApiVersions(a API) kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = int16(kafka.UnsupportedVersion)
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = a.Key, a.AdvertisedMin, a.Max
	resp.ApiKeys = append(resp.ApiKeys, k)
	return resp
}

func refuseProduce(req *kmsg.ProduceRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.BaseOffset = p.Partition, int16(kafka.UnsupportedVersion), int64(kafka.NoOffset)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func refuseFetch(req *kmsg.FetchRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewFetchResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.HighWatermark = p.Partition, int16(kafka.UnsupportedVersion), int64(kafka.NoOffset)
			rp.RecordBatches = []byte{} // old clients do not take null
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func refuseListOffsets(req *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, int16(kafka.UnsupportedVersion)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func refuseOffsetFetch(req *kmsg.OffsetFetchRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetFetchResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetFetchResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.Offset = p, int16(kafka.UnsupportedVersion), int64(kafka.NoOffset)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func refuseOffsetForLeaderEpoch(req *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.EndOffset = p.Partition, int16(kafka.UnsupportedVersion), int64(kafka.NoOffset)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
