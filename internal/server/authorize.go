package server

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// need is the right that a whole request takes. What a request needs for each of the things it names, its handler asks for where it answers for
// that thing.
type need struct {
	op       kmsg.ACLOperation
	resource kmsg.ACLResourceType
}

var (
	alterCluster           = &need{kmsg.ACLOperationAlter, kmsg.ACLResourceTypeCluster}
	describeCluster        = &need{kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeCluster}
	alterClusterConfigs    = &need{kmsg.ACLOperationAlterConfigs, kmsg.ACLResourceTypeCluster}
	describeClusterConfigs = &need{kmsg.ACLOperationDescribeConfigs, kmsg.ACLResourceTypeCluster}

	readGroup   = &need{kmsg.ACLOperationRead, kmsg.ACLResourceTypeGroup}
	deleteGroup = &need{kmsg.ACLOperationDelete, kmsg.ACLResourceTypeGroup}
)

// authorise judges the right that a whole request takes; false comes with the refusal.
func (s *Server) authorise(call *Call, n *need) (Reply, bool) {
	if n == nil {
		return Reply{}, true
	}
	act, code := auth.OnCluster(n.op), kafka.ClusterAuthorizationFailed
	if n.resource == kmsg.ACLResourceTypeGroup {
		act, code = auth.Action{Operation: n.op, Resource: n.resource, Name: groupOf(call.Request)}, kafka.GroupAuthorizationFailed
	}
	if s.mayDo(call, act) {
		return Reply{}, true
	}
	return ready(refuseWhole(call.Request, code)), false
}

// groupOf is the one group of a request.
func groupOf(req kmsg.Request) string {
	switch r := req.(type) {
	case *kmsg.JoinGroupRequest:
		return r.Group
	case *kmsg.SyncGroupRequest:
		return r.Group
	case *kmsg.HeartbeatRequest:
		return r.Group
	case *kmsg.LeaveGroupRequest:
		return r.Group
	case *kmsg.OffsetCommitRequest:
		return r.Group
	case *kmsg.OffsetDeleteRequest:
		return r.Group
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return r.Group
	}
	return ""
}

// refuseWhole is the answer that refuses a request as a whole, in the form of its API. The matrix test holds it against every row with a need.
func refuseWhole(req kmsg.Request, code kafka.ErrorCode) kmsg.Response {
	resp := req.ResponseKind()
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		r.ErrorCode, r.Generation, r.MemberID = int16(code), -1, req.(*kmsg.JoinGroupRequest).MemberID
		r.ProtocolType, r.Protocol = new(string), new(string)
	case *kmsg.SyncGroupResponse:
		r.ErrorCode = int16(code)
	case *kmsg.HeartbeatResponse:
		r.ErrorCode = int16(code)
	case *kmsg.LeaveGroupResponse:
		r.ErrorCode = int16(code)
	case *kmsg.OffsetDeleteResponse:
		r.ErrorCode = int16(code)
	case *kmsg.ConsumerGroupHeartbeatResponse:
		r.ErrorCode = int16(code)
	case *kmsg.OffsetCommitResponse:
		return refuseCommit(req.(*kmsg.OffsetCommitRequest), code)
	case *kmsg.ElectLeadersResponse:
		return refuseElection(req.(*kmsg.ElectLeadersRequest), refusal{code: code})
	case *kmsg.AlterPartitionAssignmentsResponse:
		r.ErrorCode = int16(code)
	case *kmsg.ListPartitionReassignmentsResponse:
		r.ErrorCode = int16(code)
	case *kmsg.DescribeQuorumResponse:
		r.ErrorCode = int16(code)
	case *kmsg.UpdateFeaturesResponse:
		r.ErrorCode = int16(code)
	case *kmsg.UnregisterBrokerResponse:
		r.ErrorCode = int16(code)
	case *kmsg.AddRaftVoterResponse:
		r.ErrorCode = int16(code)
	case *kmsg.RemoveRaftVoterResponse:
		r.ErrorCode = int16(code)
	case *kmsg.DescribeClientQuotasResponse:
		r.ErrorCode = int16(code)
	case *kmsg.AlterClientQuotasResponse:
		return refuseQuotas(req.(*kmsg.AlterClientQuotasRequest), refusal{code: code})
	case *kmsg.DescribeLogDirsResponse:
		r.ErrorCode = int16(code) // below v3 the list is only empty, as Kafka's
	}
	return resp
}

func refuseCommit(req *kmsg.OffsetCommitRequest, code kafka.ErrorCode) kmsg.Response {
	resp := reply[*kmsg.OffsetCommitResponse](req)
	for i := range req.Topics {
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic, out.TopicID = req.Topics[i].Topic, req.Topics[i].TopicID
		for j := range req.Topics[i].Partitions {
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.Partition, p.ErrorCode = req.Topics[i].Partitions[j].Partition, int16(code)
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// findTopicFor is findTopic for somebody who must be allowed to do op with it. A name is judged before it is looked up, so that whoever
// may not even see the topic learns nothing about whether it exists; an id that is nobody's says so, since ids cannot be guessed.
func (s *Server) findTopicFor(call *Call, op kmsg.ACLOperation, img *metadata.Image, ref topicRef) (*metadata.Topic, kafka.ErrorCode) {
	if !ref.byID && !s.mayTopic(call, op, ref.name) {
		return nil, kafka.TopicAuthorizationFailed
	}
	t, code := findTopic(img, ref.name, ref.id, ref.byID)
	if t != nil && ref.byID && !s.mayTopic(call, op, t.Name) {
		return nil, kafka.TopicAuthorizationFailed
	}
	return t, code
}

// topicRef is how a request names a topic: by id when byID is set, else by name.
type topicRef struct {
	name string
	id   kafka.TopicID
	byID bool
}

func byName(name string) topicRef { return topicRef{name: name} }

// mayTopic is may for a topic, seesTopic the same without a denial, mayGroup for a group.
func (s *Server) mayTopic(call *Call, op kmsg.ACLOperation, name string) bool {
	return s.may(call, op, kmsg.ACLResourceTypeTopic, name)
}

func (s *Server) seesTopic(call *Call, op kmsg.ACLOperation, name string) bool {
	return s.sees(call, auth.Action{Operation: op, Resource: kmsg.ACLResourceTypeTopic, Name: name})
}

func (s *Server) mayGroup(call *Call, op kmsg.ACLOperation, name string) bool {
	return s.may(call, op, kmsg.ACLResourceTypeGroup, name)
}

// mayCreate says whether a topic may be created: by the right on the cluster, or on the topic's name.
func (s *Server) mayCreate(call *Call, name string) bool {
	return s.sees(call, auth.OnCluster(kmsg.ACLOperationCreate)) || s.mayTopic(call, kmsg.ACLOperationCreate, name)
}

// mayConfigs says whether the configs of a resource may be read or changed, and the code that says no.
func (s *Server) mayConfigs(call *Call, op kmsg.ACLOperation, kind metadata.ResourceKind, name string) kafka.ErrorCode {
	switch {
	case kind == metadata.ResourceTopic && !s.mayTopic(call, op, name):
		return kafka.TopicAuthorizationFailed
	case kind == resourceGroup && !s.mayGroup(call, op, name):
		return kafka.GroupAuthorizationFailed
	case kind != metadata.ResourceTopic && kind != resourceGroup && !s.mayCluster(call, op):
		return kafka.ClusterAuthorizationFailed
	}
	return kafka.None
}

// resourceGroup is a group as a resource with configs.
const resourceGroup = metadata.ResourceKind(kmsg.ConfigResourceTypeGroupConfig)

// What describe answers list as operations of each kind of resource.
var (
	topicOperations = []kmsg.ACLOperation{
		kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate, kmsg.ACLOperationDelete, kmsg.ACLOperationAlter,
		kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
	}
	groupOperations   = []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationDelete, kmsg.ACLOperationDescribe}
	clusterOperations = []kmsg.ACLOperation{
		kmsg.ACLOperationCreate, kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe, kmsg.ACLOperationClusterAction,
		kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs, kmsg.ACLOperationIdempotentWrite,
	}
)

func (s *Server) topicBits(call *Call, name string) int32 {
	return s.operations(call, kmsg.ACLResourceTypeTopic, name, topicOperations)
}

func (s *Server) clusterBits(call *Call) int32 {
	return s.operations(call, kmsg.ACLResourceTypeCluster, metadata.ClusterName, clusterOperations)
}

// absent is the message of a topic that findTopicFor does not hand out.
func absent(code kafka.ErrorCode) string {
	if code == kafka.TopicAuthorizationFailed {
		return ""
	}
	return "no such topic"
}
