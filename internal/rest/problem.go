package rest

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/server"
)

// What a failed request did.
const (
	outcomeNone    = "none"
	outcomeUnknown = "unknown"
)

// problem is an RFC 9457 problem document.
type problem struct {
	Type      string       `json:"type" doc:"about:blank"`
	Title     string       `json:"title" doc:"the status in words"`
	Status    int          `json:"status" doc:"the HTTP status"`
	Detail    string       `json:"detail" doc:"what failed, why, and what to do"`
	Code      string       `json:"code" doc:"the error's name, as on the Kafka port where that has one"`
	Retriable bool         `json:"retriable" doc:"the same request may succeed later"`
	Outcome   string       `json:"outcome" enum:"none,unknown" doc:"none: nothing was done; unknown: it may have been done"`
	Errors    []fieldError `json:"errors,omitempty" doc:"what is wrong with which part of the request"`
	Leader    *leader      `json:"leader,omitempty" doc:"who leads the partition, for 421"`
	Range     *validRange  `json:"validRange,omitempty" doc:"the offsets that can be read, for 416"`

	retryAfter time.Duration
	headers    http.Header
}

// fieldError is one fault of a request.
type fieldError struct {
	Location string `json:"location" doc:"where: body.partitionCount, query.limit, path.topic, records[3].value"`
	Message  string `json:"message"`
}

// leader is where a Kafka client reaches the leader of a partition.
type leader struct {
	NodeID      int32  `json:"nodeId"`
	Host        string `json:"host,omitempty"`
	Port        int32  `json:"port,omitempty"`
	LeaderEpoch int32  `json:"leaderEpoch"`
}

// validRange is the half-open range of offsets that can be read.
type validRange struct {
	LogStart      int64 `json:"logStart"`
	HighWatermark int64 `json:"highWatermark"`
}

// Error is what failed.
func (p *problem) Error() string { return p.Code + ": " + p.Detail }

// GetStatus makes a problem an error that huma answers with.
func (p *problem) GetStatus() int { return p.Status }

// GetHeaders are the headers beside the document.
func (p *problem) GetHeaders() http.Header {
	h := p.headers
	if p.retryAfter > 0 {
		if h == nil {
			h = http.Header{}
		}
		h.Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
	return h
}

// ContentType is that of problem documents.
func (*problem) ContentType(string) string { return "application/problem+json" }

// statuses gives each code of the protocol that this door can meet its HTTP status. What is missing is 500: TestProblems_EveryCode holds the table
// against the server's.
var statuses = map[kafka.ErrorCode]int{
	kafka.OffsetOutOfRange:         http.StatusRequestedRangeNotSatisfiable,
	kafka.UnknownTopicOrPartition:  http.StatusNotFound,
	kafka.UnknownTopicID:           http.StatusNotFound,
	kafka.GroupIDNotFound:          http.StatusNotFound,
	kafka.UnknownMemberID:          http.StatusNotFound,
	kafka.ResourceNotFound:         http.StatusNotFound,
	kafka.NotLeaderOrFollower:      http.StatusMisdirectedRequest,
	kafka.FencedLeaderEpoch:        http.StatusMisdirectedRequest,
	kafka.UnknownLeaderEpoch:       http.StatusMisdirectedRequest,
	kafka.RequestTimedOut:          http.StatusGatewayTimeout,
	kafka.MessageTooLarge:          http.StatusRequestEntityTooLarge,
	kafka.RecordListTooLarge:       http.StatusRequestEntityTooLarge,
	kafka.OffsetMetadataTooLarge:   http.StatusRequestEntityTooLarge,
	kafka.ThrottlingQuotaExceeded:  http.StatusTooManyRequests,
	kafka.SASLAuthenticationFailed: http.StatusUnauthorized,

	kafka.LeaderNotAvailable:           http.StatusServiceUnavailable,
	kafka.BrokerNotAvailable:           http.StatusServiceUnavailable,
	kafka.ReplicaNotAvailable:          http.StatusServiceUnavailable,
	kafka.CoordinatorLoadInProgress:    http.StatusServiceUnavailable,
	kafka.CoordinatorNotAvailable:      http.StatusServiceUnavailable,
	kafka.NotCoordinator:               http.StatusServiceUnavailable,
	kafka.NotController:                http.StatusServiceUnavailable,
	kafka.NotEnoughReplicas:            http.StatusServiceUnavailable,
	kafka.NotEnoughReplicasAfterAppend: http.StatusServiceUnavailable,
	kafka.KafkaStorageError:            http.StatusServiceUnavailable,
	kafka.OffsetNotAvailable:           http.StatusServiceUnavailable,
	kafka.ListenerNotFound:             http.StatusServiceUnavailable,

	kafka.TopicAlreadyExists:        http.StatusConflict,
	kafka.IllegalGeneration:         http.StatusConflict,
	kafka.RebalanceInProgress:       http.StatusConflict,
	kafka.FencedMemberEpoch:         http.StatusConflict,
	kafka.StaleMemberEpoch:          http.StatusConflict,
	kafka.FencedInstanceID:          http.StatusConflict,
	kafka.UnreleasedInstanceID:      http.StatusConflict,
	kafka.NonEmptyGroup:             http.StatusConflict,
	kafka.GroupSubscribedToTopic:    http.StatusConflict,
	kafka.InconsistentGroupProtocol: http.StatusConflict,
	kafka.GroupMaxSizeReached:       http.StatusConflict,
	kafka.ReassignmentInProgress:    http.StatusConflict,
	kafka.InvalidUpdateVersion:      http.StatusConflict,
	kafka.DuplicateSequenceNumber:   http.StatusConflict,
	kafka.OutOfOrderSequenceNumber:  http.StatusConflict,
	kafka.InvalidProducerEpoch:      http.StatusConflict,

	kafka.TopicAuthorizationFailed:           http.StatusForbidden,
	kafka.GroupAuthorizationFailed:           http.StatusForbidden,
	kafka.ClusterAuthorizationFailed:         http.StatusForbidden,
	kafka.TransactionalIDAuthorizationFailed: http.StatusForbidden,
	kafka.TopicDeletionDisabled:              http.StatusForbidden,

	kafka.DuplicateResource:        http.StatusConflict,
	kafka.StaleBrokerEpoch:         http.StatusConflict,
	kafka.NoReassignmentInProgress: http.StatusConflict,
	kafka.VoterNotFound:            http.StatusNotFound,
	kafka.BrokerIDNotRegistered:    http.StatusNotFound,
	kafka.SecurityDisabled:         http.StatusUnprocessableEntity,
	kafka.UnacceptableCredential:   http.StatusUnprocessableEntity,

	kafka.CorruptMessage:             http.StatusUnprocessableEntity,
	kafka.InvalidTopicException:      http.StatusUnprocessableEntity,
	kafka.InvalidRequiredAcks:        http.StatusUnprocessableEntity,
	kafka.InvalidGroupID:             http.StatusUnprocessableEntity,
	kafka.InvalidTimestamp:           http.StatusUnprocessableEntity,
	kafka.UnsupportedVersion:         http.StatusUnprocessableEntity,
	kafka.InvalidPartitions:          http.StatusUnprocessableEntity,
	kafka.InvalidReplicationFactor:   http.StatusUnprocessableEntity,
	kafka.InvalidReplicaAssignment:   http.StatusUnprocessableEntity,
	kafka.InvalidConfig:              http.StatusUnprocessableEntity,
	kafka.InvalidRequest:             http.StatusUnprocessableEntity,
	kafka.InvalidRecord:              http.StatusUnprocessableEntity,
	kafka.PolicyViolation:            http.StatusUnprocessableEntity,
	kafka.UnsupportedAssignor:        http.StatusUnprocessableEntity,
	kafka.InvalidRegularExpression:   http.StatusUnprocessableEntity,
	kafka.InvalidSessionTimeout:      http.StatusUnprocessableEntity,
	kafka.UnsupportedCompressionType: http.StatusUnprocessableEntity,
}

// names are codes that this door calls otherwise than the protocol does.
var names = map[kafka.ErrorCode]string{kafka.InvalidUpdateVersion: "VERSION_CONFLICT"}

// failed is the problem of a code. Without a message of the server's, the code speaks for itself.
func failed(code kafka.ErrorCode, message *string) *problem {
	status, ok := statuses[code]
	if !ok {
		status = http.StatusInternalServerError
	}
	name, ok := names[code]
	if !ok {
		name = code.String()
	}
	p := refuse(status, name, name)
	if message != nil && *message != "" {
		p.Detail = *message
	}
	p.Retriable = code.Retriable() && status != http.StatusNotFound
	switch {
	case code == kafka.RequestTimedOut:
		p.Outcome = outcomeUnknown
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		p.retryAfter = time.Second
	}
	return p
}

// throttled is the problem of a client over its quota; nothing was done.
func throttled(why string, wait time.Duration) *problem {
	p := failed(kafka.ThrottlingQuotaExceeded, &why)
	if wait > 0 {
		p.retryAfter = wait
	}
	return p
}

// refuse is a problem of this door's own; nothing was done.
func refuse(status int, code, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code, Outcome: outcomeNone}
}

// invalid refuses a part of the request.
func invalid(location, message string) *problem {
	p := refuse(http.StatusUnprocessableEntity, kafka.InvalidRequest.String(), location+": "+message)
	p.Errors = []fieldError{{location, message}}
	return p
}

// unanswered is the problem of a request that a node did not answer.
func unanswered(err error) *problem {
	if over := (*server.ThrottledError)(nil); errors.As(err, &over) {
		return throttled(over.Why, over.Wait)
	}
	if errors.Is(err, peer.ErrUnreachable) {
		p := failed(kafka.BrokerNotAvailable, nil)
		p.Detail = "the node that this request is for cannot be reached; nothing was done: " + err.Error()
		return p
	}
	p := failed(kafka.RequestTimedOut, nil)
	p.Detail, p.Retriable = "no answer in time; whether it was done is not known: "+err.Error(), true
	return p
}

// asProblem is the problem that an error is; what nobody expected is a mistake in the broker.
func asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	p = failed(kafka.UnknownServerError, nil)
	p.Detail, p.Outcome = "this is a mistake in the broker; its log has the error", outcomeUnknown
	return p
}

// write sends the document.
func (p *problem) write(w http.ResponseWriter) {
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.MarshalWrite(w, p, json.Deterministic(true))
}

// writeError answers with an error, which is a problem or was expected by nobody.
func (d *door) writeError(w http.ResponseWriter, err error) {
	p := asProblem(err)
	if p.Status == http.StatusInternalServerError {
		d.cfg.Log.Error("an error of the HTTP door has no status", "error", err)
	}
	p.write(w)
}

// problemOf turns huma's own errors into problems. Their values are left out: they repeat what the client sent (H24).
func problemOf(e *huma.ErrorModel) *problem {
	code := kafka.InvalidRequest.String()
	if e.Status == http.StatusInternalServerError {
		code = kafka.UnknownServerError.String()
	}
	p := refuse(e.Status, code, e.Detail)
	for i, d := range e.Errors {
		p.Errors = append(p.Errors, fieldError{d.Location, d.Message})
		if i == 0 {
			p.Detail = d.Location + ": " + d.Message
		}
	}
	return p
}
