package server

import (
	"context"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/wire"
)

const (
	// topicNameMax is Kafka's limit on topic names, in bytes.
	topicNameMax = 249
)

// handleMetadata answers from one Image. Topics are created on the way only if the broker's settings and the request both say so, and
// never by an all-topics request (O5).
func (s *Server) handleMetadata(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.MetadataRequest)
	img := s.cfg.Image()
	refused := map[string]refusal{}
	missing := slices.DeleteFunc(s.toCreate(img, req), func(name string) bool {
		may := s.seesTopic(call, kmsg.ACLOperationDescribe, name) && s.mayCreate(call, name)
		if !may {
			refused[name] = refusal{code: kafka.TopicAuthorizationFailed}
		}
		return !may
	})
	if len(missing) == 0 {
		if s.cfg.Settle != nil && len(refused) == 0 {
			if settle := s.cfg.Settle(); settle != nil {
				return s.judged(ctx, settle, req, call)
			}
		}
		return ready(s.metadata(img, req, call, refused))
	}
	return background(ctx, autoCreateWait, func(ctx context.Context) kmsg.Response {
		maps.Copy(refused, s.autoCreate(ctx, call, missing))
		return s.metadata(s.cfg.Image(), req, call, refused)
	})
}

// toCreate returns the names that the request makes us create: at most autoCreateMax, and none at all of a larger list, which is a
// mistake or an attack (K37).
func (s *Server) toCreate(img *metadata.Image, req *kmsg.MetadataRequest) []string {
	if !s.broker().AutoCreateTopics || (req.Version >= 4 && !req.AllowAutoTopicCreation) {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for _, t := range req.Topics {
		if t.Topic == nil || t.TopicID != [16]byte{} || seen[*t.Topic] || !validTopicName(*t.Topic) || reservedTopic(*t.Topic) {
			continue
		}
		if img.Topic(*t.Topic) != nil {
			continue
		}
		if len(names) == autoCreateMax {
			return nil
		}
		seen[*t.Topic] = true
		names = append(names, *t.Topic)
	}
	return names
}

// autoCreate creates topics with the broker's defaults and returns those that were refused, by name.
func (s *Server) autoCreate(ctx context.Context, call *Call, names []string) map[string]refusal {
	ev := metadata.CreateTopics{Principal: call.Principal}
	for _, n := range names {
		ev.Topics = append(ev.Topics, metadata.NewTopic{Name: n, Partitions: -1, ReplicationFactor: -1})
	}
	results, err := decide[[]metadata.TopicResult](ctx, s, call, s.createEvent(ev))
	refused := map[string]refusal{}
	if err != nil {
		s.cfg.Log.Warn("creating topics on a client's metadata request failed", "client", clip(call.ClientID), "topics", len(names), "error", err)
		return refused // they are answered as not there yet, which clients retry
	}
	for _, r := range results {
		switch r.Code {
		case kafka.None:
			s.cfg.Log.Info("a topic was created implicitly by a client's metadata request",
				"topic", r.Name, "client", clip(call.ClientID), "peer", call.Peer, "principal", call.Principal.String())
		case kafka.TopicAlreadyExists:
		default:
			refused[r.Name] = refusal{r.Code, r.Message}
		}
	}
	return refused
}

// metadata builds the answer; refused are topics whose creation was.
func (s *Server) metadata(img *metadata.Image, req *kmsg.MetadataRequest, call *Call, refused map[string]refusal) kmsg.Response {
	resp := reply[*kmsg.MetadataResponse](req)
	if id := img.ClusterID(); id != "" {
		resp.ClusterID = &id
	}
	resp.ControllerID = int32(s.controllerID(img))
	resp.Brokers = s.metadataBrokers(img, call)
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = s.clusterBits(call)
	}
	if told(req)&wire.TellTrash != 0 {
		resp.UnknownTags.Set(wire.TagTrash, s.trashTag(call, img))
	}
	if req.Topics == nil || (req.Version == 0 && len(req.Topics) == 0) {
		for t := range img.Topics() {
			if t.State == metadata.StateReady && s.seesTopic(call, kmsg.ACLOperationDescribe, t.Name) {
				resp.Topics = append(resp.Topics, s.metadataTopic(img, t, req, call))
			}
		}
		return resp
	}
	resp.Topics = make([]kmsg.MetadataResponseTopic, 0, len(req.Topics))
	for i := range req.Topics {
		asked := &req.Topics[i]
		t, code := s.lookUpFor(call, img, req, asked, refused)
		if i >= lookupsMax {
			t, code = nil, kafka.PolicyViolation
		}
		if t == nil {
			resp.Topics = append(resp.Topics, missingTopic(req, asked, code))
			continue
		}
		resp.Topics = append(resp.Topics, s.metadataTopic(img, t, req, call))
	}
	return resp
}

func (s *Server) metadataBrokers(img *metadata.Image, call *Call) []kmsg.MetadataResponseBroker {
	var out []kmsg.MetadataResponseBroker
	for b := range img.Brokers() {
		at, ok := s.endpointOf(b, call)
		if b.Fenced || !ok {
			continue
		}
		r := kmsg.NewMetadataResponseBroker()
		r.NodeID, r.Host, r.Port, r.Rack = int32(b.ID), at.Host, at.Port, rackOf(b)
		out = append(out, r)
	}
	return out
}

// lookUp finds the topic that one entry of a request asks for, or the code that says why there is none.
func lookUp(img *metadata.Image, req *kmsg.MetadataRequest, asked *kmsg.MetadataRequestTopic, refused map[string]refusal) (*metadata.Topic, kafka.ErrorCode) {
	byID := asked.TopicID != [16]byte{}
	switch {
	case byID && req.Version < 12, !byID && asked.Topic == nil:
		return nil, kafka.InvalidRequest
	case byID:
		if t := img.TopicByID(asked.TopicID); t != nil && t.State == metadata.StateReady {
			return t, kafka.None
		}
		return nil, kafka.UnknownTopicID
	}
	t := img.Topic(*asked.Topic)
	r, wasRefused := refused[*asked.Topic]
	switch {
	case t != nil && t.State == metadata.StateReady:
		return t, kafka.None
	case t != nil:
		return nil, kafka.LeaderNotAvailable // being created
	case wasRefused:
		return nil, r.code
	case !validTopicName(*asked.Topic):
		return nil, kafka.InvalidTopicException
	}
	return nil, kafka.UnknownTopicOrPartition
}

// lookUpFor is lookUp for somebody who must be allowed to see the topic. A name is judged before it is looked up.
func (s *Server) lookUpFor(call *Call, img *metadata.Image, req *kmsg.MetadataRequest, asked *kmsg.MetadataRequestTopic, refused map[string]refusal) (*metadata.Topic, kafka.ErrorCode) {
	if asked.Topic != nil && asked.TopicID == [16]byte{} && !s.mayTopic(call, kmsg.ACLOperationDescribe, *asked.Topic) {
		return nil, kafka.TopicAuthorizationFailed
	}
	t, code := lookUp(img, req, asked, refused)
	if t != nil && asked.TopicID != [16]byte{} && !s.mayTopic(call, kmsg.ACLOperationDescribe, t.Name) {
		return nil, kafka.TopicAuthorizationFailed
	}
	return t, code
}

func missingTopic(req *kmsg.MetadataRequest, asked *kmsg.MetadataRequestTopic, code kafka.ErrorCode) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.ErrorCode, out.Topic = int16(code), asked.Topic
	if asked.TopicID != [16]byte{} {
		out.Topic, out.TopicID = nil, asked.TopicID
	}
	if out.Topic == nil && req.Version < 12 {
		out.Topic = new(string) // not nullable before v12
	}
	return out
}

func (s *Server) metadataTopic(img *metadata.Image, t *metadata.Topic, req *kmsg.MetadataRequest, call *Call) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, t.Internal
	if told(req)&wire.TellLife != 0 {
		out.UnknownTags.Set(wire.TagTopicLife, lifeTag(t))
	}
	if req.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = s.topicBits(call, t.Name)
	}
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i := range t.Partitions {
		st, p := &t.Partitions[i], &out.Partitions[i]
		p.Default()
		p.Partition, p.LeaderEpoch = int32(i), int32(st.LeaderEpoch)
		p.Replicas, p.ISR = nodeIDs(st.Replicas), nodeIDs(st.ISR)
		p.OfflineReplicas = offline(img, st.Replicas)
		if st.Leader == kafka.NoNode && s.offlineHere(t.ID, int32(i), st) {
			// The error stays LEADER_NOT_AVAILABLE, as Kafka's: it is the one that clients pass such a partition over for (sarama), while the
			// list says why there is no leader.
			p.OfflineReplicas = withNode(p.OfflineReplicas, s.cfg.Node)
		}
		p.Leader = int32(st.Leader)
		p.ErrorCode = int16(s.leaderCode(img, st, call, req.Version))
		if p.ErrorCode != 0 {
			p.Leader = int32(kafka.NoNode) // never a leader that cannot be reached, never an invented one (I13, C077)
		}
	}
	return out
}

// leaderCode says whether a client of this listener can reach the leader of a partition.
func (s *Server) leaderCode(img *metadata.Image, st *kafka.PartitionState, call *Call, version int16) kafka.ErrorCode {
	if st.Leader == kafka.NoNode {
		return kafka.LeaderNotAvailable
	}
	if _, ok := s.Endpoint(img, st.Leader, call); !ok {
		if version < 6 {
			return kafka.LeaderNotAvailable
		}
		return kafka.ListenerNotFound
	}
	return kafka.None
}

func nodeIDs(nodes []kafka.NodeID) []int32 {
	out := make([]int32, len(nodes))
	for i, n := range nodes {
		out[i] = int32(n)
	}
	return out
}

// offline returns the replicas whose broker is fenced or not registered.
func offline(img *metadata.Image, nodes []kafka.NodeID) []int32 {
	var out []int32
	for _, n := range nodes {
		if b := img.Broker(n); b == nil || b.Fenced {
			out = append(out, int32(n))
		}
	}
	return out
}

// offlineHere says that the replica on this node is damaged or cannot be opened, and that no other node leads instead.
func (s *Server) offlineHere(topic kafka.TopicID, partition int32, st *kafka.PartitionState) bool {
	if (st.Leader != kafka.NoNode && st.Leader != s.cfg.Node) || !slices.Contains(st.Replicas, s.cfg.Node) {
		return false
	}
	status, held := s.cfg.Replicas.Describe(kafka.TopicPartition{Topic: topic, Partition: partition})
	return held && status.Role == replica.Offline
}

func withNode(nodes []int32, node kafka.NodeID) []int32 {
	if slices.Contains(nodes, int32(node)) {
		return nodes
	}
	return append(nodes, int32(node))
}

// validTopicName is Kafka's rule: 1-249 of letters, digits, '.', '_' and '-', and neither "." nor "..". Whether a topic may be created
// under a name is the controller's decision; this only tells a wrong name from a missing topic.
func validTopicName(name string) bool {
	if len(name) == 0 || len(name) > topicNameMax || name == "." || name == ".." || !utf8.ValidString(name) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return false
		}
	}
	return true
}

// reservedTopic says whether the name belongs to the broker: no client creates it or publishes to it (K20).
func reservedTopic(name string) bool {
	return name == "__consumer_offsets" || name == "__transaction_state" || name == audit.TopicName || name == metadata.CanaryTopic
}
