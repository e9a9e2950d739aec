package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// begin has a change written down before it is made (I15); an error means that it must not be made. done says what became of it, "" for done.
func (s *Server) begin(ctx context.Context, call *Call, ev auth.Event) (done func(outcome string), err error) {
	if s.cfg.Audit == nil {
		return func(string) {}, nil
	}
	ev.What, ev.Principal, ev.Peer, ev.Client = auth.Change, call.Principal, call.Peer, clip(call.ClientID)
	return s.cfg.Audit.Begin(ctx, ev)
}

// audited makes a change whose reply may be parked: refuse answers when it is not written down, and codes are read from the answer.
func (s *Server) audited(ctx context.Context, call *Call, ev auth.Event, refuse func(kafka.ErrorCode) kmsg.Response, do func() Reply) Reply {
	if s.cfg.Audit == nil {
		return do()
	}
	return background(ctx, adminWaitMax, func(ctx context.Context) kmsg.Response {
		done, err := s.begin(ctx, call, ev)
		if err != nil {
			return refuse(s.code(err, "audit"))
		}
		r, err := Await(ctx, do())
		if err != nil {
			done("not known: " + err.Error())
			return refuse(kafka.RequestTimedOut)
		}
		done(refusals(r.Response))
		return r.Response
	})
}

// refusals are the errors in the answer to a change of groups or records.
func refusals(resp kmsg.Response) string {
	var l list
	switch r := resp.(type) {
	case *kmsg.DeleteGroupsResponse:
		for _, g := range r.Groups {
			l.code(g.Group, g.ErrorCode)
		}
	case *kmsg.OffsetDeleteResponse:
		l.code("group", r.ErrorCode)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				l.code(fmt.Sprintf("%s-%d", t.Topic, p.Partition), p.ErrorCode)
			}
		}
	case *kmsg.OffsetCommitResponse: // a seek: its outcome is in the tag
		r.UnknownTags.Each(func(tag uint32, v []byte) {
			if tag == seekTag {
				d := wire.NewDecoder(v)
				d.ExpectHeader(seekTag, 0)
				l.code("group", d.Int16())
			}
		})
	case *kmsg.DeleteRecordsResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				l.code(fmt.Sprintf("%s-%d", t.Topic, p.Partition), p.ErrorCode)
			}
		}
	}
	return l.String()
}

// list is text with commas, of which only so much is built as an entry takes (I14).
type list struct {
	strings.Builder
	more bool
}

func (l *list) add(format string, args ...any) {
	if l.Len() > changeTextMax {
		if !l.more {
			l.more = true
			l.WriteString(", and more")
		}
		return
	}
	if l.Len() > 0 {
		l.WriteString(", ")
	}
	fmt.Fprintf(l, format, args...)
}

func (l *list) code(what string, code int16) {
	if code != 0 {
		l.add("%s: %v", what, kafka.ErrorCode(code))
	}
}

func (l *list) refused(what string, o metadata.Outcome) {
	if !o.OK() {
		l.add("%s: %v %s", what, o.Code, o.Message)
	}
}

// decided are the refusals in the controller's answer: "" when all was done.
func decided(answer any) string {
	var l list
	switch rs := answer.(type) {
	case []metadata.TopicResult:
		for _, r := range rs {
			l.refused(r.Name, r.Outcome)
		}
	case []metadata.DeleteResult:
		for _, r := range rs {
			l.refused(r.Name, r.Outcome)
		}
	case []metadata.PartitionsResult:
		for _, r := range rs {
			l.refused(r.Name, r.Outcome)
		}
	case []metadata.ElectionResult:
		for _, r := range rs {
			l.refused(fmt.Sprintf("%s-%d", r.Topic, r.Partition), r.Outcome)
		}
	case []metadata.AssignmentResult:
		for _, r := range rs {
			l.refused(fmt.Sprintf("%s-%d", r.Topic, r.Partition), r.Outcome)
		}
	case []metadata.Recovered:
		for _, r := range rs {
			l.refused(fmt.Sprintf("%s-%d", r.Topic, r.Partition), r.Outcome)
		}
	case []metadata.ACLCreated:
		for _, r := range rs {
			l.refused("ACL", r.Outcome)
		}
	case []metadata.ACLsDeleted:
		for _, r := range rs {
			l.refused("ACL", r.Outcome)
		}
	case []metadata.ScramAltered:
		for _, r := range rs {
			l.refused(r.User, r.Outcome)
		}
	case []metadata.QuotaAltered:
		for _, r := range rs {
			l.refused("quota", r.Outcome)
		}
	case metadata.RestoreResult:
		l.refused(rs.Name, rs.Outcome)
	case metadata.AlterResult:
		l.refused("configs", rs.Outcome)
	case metadata.BrokerRemoved:
		l.refused("broker", rs.Outcome)
	}
	return l.String()
}

// changeOf describes an administrative event: what it is about, what is there, and what is to be. ok is false when it changes nothing.
// Secrets are in no description.
func (s *Server) changeOf(ev metadata.Event) (out auth.Event, ok bool) {
	if s.cfg.Audit == nil {
		return auth.Event{}, false
	}
	img := s.cfg.Image()
	name, _ := strings.CutPrefix(fmt.Sprintf("%T", ev), "metadata.")
	var what, before, after list
	switch ev := ev.(type) {
	case metadata.CreateTopics:
		for _, t := range ev.Topics {
			what.add("Topic:%s", t.Name)
			after.add("%s: %d partitions, %d replicas%s", t.Name, t.Partitions, t.ReplicationFactor, given(t.Configs))
		}
		ok = !ev.ValidateOnly
	case metadata.DeleteTopics:
		for _, d := range ev.Topics {
			t := img.Topic(d.Name)
			if !d.ID.IsZero() {
				t = img.TopicByID(d.ID)
			}
			if t == nil {
				what.add("Topic:%s", d.Name)
				continue
			}
			what.add("Topic:%s", t.Name)
			before.add("%s: id %v, %d partitions%s", t.Name, t.ID, len(t.Partitions), configured(t.Configs))
		}
		ok = true
	case metadata.RestoreTopic:
		from := ev.Name
		if t := img.TopicByID(ev.ID); t != nil {
			from = t.Name
		}
		what.add("Topic:%s", from)
		before.add("%s: in the trash", from)
		after.add("%s: ready", cmp.Or(ev.As, from))
		ok = true
	case metadata.CreatePartitions:
		for _, p := range ev.Topics {
			what.add("Topic:%s", p.Name)
			if t := img.Topic(p.Name); t != nil {
				before.add("%s: %d partitions", p.Name, len(t.Partitions))
			}
			after.add("%s: %d partitions", p.Name, p.Count)
		}
		ok = !ev.ValidateOnly
	case metadata.AlterConfigs:
		configsOf(img, ev, &what, &before, &after)
		ok = !ev.ValidateOnly
	case metadata.AlterQuotas:
		quotasOf(img, ev, &what, &before, &after)
		ok = !ev.ValidateOnly
	default:
		ok = describeAccess(img, ev, &what, &before, &after) || describeReplicas(img, ev, &what, &before, &after)
		if !ok {
			what.add("Cluster:%s", metadata.ClusterName)
			ok = true
		}
	}
	return auth.Event{API: name, Resource: what.String(), Before: before.String(), After: after.String()}, ok
}

func configsOf(img *metadata.Image, ev metadata.AlterConfigs, what, before, after *list) {
	var have map[string]string
	switch ev.Resource.Kind {
	case metadata.ResourceTopic:
		what.add("Topic:%s", ev.Resource.Name)
		if t := img.Topic(ev.Resource.Name); t != nil {
			have = t.Configs
		}
	default:
		what.add("Broker:%s", ev.Resource.Name)
		id := kafka.NoNode
		if _, err := fmt.Sscan(ev.Resource.Name, &id); err != nil {
			id = kafka.NoNode // the default of all brokers
		}
		have = img.BrokerConfigs(id)
	}
	if ev.Replace {
		before.add("all that was set:%s", configured(have))
		after.add("only what is named")
	}
	for _, op := range ev.Ops {
		if v, set := have[op.Key]; set {
			before.add("%s=%s", op.Key, v)
		} else {
			before.add("%s not set", op.Key)
		}
		switch {
		case op.Op == metadata.OpDelete || op.Value == nil:
			after.add("%s not set", op.Key)
		default:
			after.add("%s%s%s", op.Key, [...]string{"=", "=", "+=", "-="}[op.Op&3], *op.Value)
		}
	}
}

func quotasOf(img *metadata.Image, ev metadata.AlterQuotas, what, before, after *list) {
	for _, c := range ev.Entities {
		what.add("Quota:%v", c.Entity)
		for _, op := range c.Ops {
			if v, there := img.Quota(c.Entity, op.Kind); there {
				before.add("%v: %v=%v", c.Entity, op.Kind, v)
			} else {
				before.add("%v: %v not set", c.Entity, op.Kind)
			}
			if op.Remove {
				after.add("%v: %v not set", c.Entity, op.Kind)
				continue
			}
			after.add("%v: %v=%v", c.Entity, op.Kind, op.Value)
		}
	}
}

// describeAccess describes changes of who may come in and do what. Of credentials there is the name and how it is made, and nothing that proves it.
func describeAccess(img *metadata.Image, ev metadata.Event, what, before, after *list) bool {
	switch ev := ev.(type) {
	case metadata.CreateACLs:
		for _, a := range ev.ACLs {
			what.add("%v:%s", a.Resource, a.Name)
			after.add("%s", auth.RuleText(a))
		}
	case metadata.DeleteACLs:
		for have := range img.ACLs() {
			if slices.ContainsFunc(ev.Filters, func(f metadata.ACLFilter) bool { return f.Selects(have) }) {
				what.add("%v:%s", have.Resource, have.Name)
				before.add("%s", auth.RuleText(have))
			}
		}
		if what.Len() == 0 {
			what.add("no ACL")
		}
	case metadata.AlterScram:
		was := func(user string, m metadata.ScramMechanism) {
			what.add("User:%s", user)
			if c := img.Scram(user, m); c != nil {
				before.add("%s: %v, %d iterations", user, m, c.Iterations)
			}
		}
		for _, r := range ev.Remove {
			was(r.User, r.Mechanism)
			after.add("%s: no %v", r.User, r.Mechanism)
		}
		for _, c := range ev.Set {
			was(c.User, c.Mechanism)
			after.add("%s: %v, %d iterations, another password", c.User, c.Mechanism, c.Iterations)
		}
	default:
		return false
	}
	return true
}

// describeReplicas describes changes of who holds and leads partitions.
func describeReplicas(img *metadata.Image, ev metadata.Event, what, before, after *list) bool {
	state := func(topic string, partition int32) {
		what.add("Topic:%s", topic)
		if t := img.Topic(topic); t != nil && partition >= 0 && int(partition) < len(t.Partitions) {
			p := &t.Partitions[partition]
			before.add("%s-%d: replicas %v, in sync %v, leader %v", topic, partition, p.Replicas, p.ISR, p.Leader)
		}
	}
	switch ev := ev.(type) {
	case metadata.ElectLeaders:
		if ev.All {
			what.add("Cluster:%s", metadata.ClusterName)
		}
		for _, p := range ev.Partitions {
			state(p.Topic, p.Partition)
		}
	case metadata.AlterAssignments:
		for _, p := range ev.Partitions {
			state(p.Topic, p.Partition)
			if p.Cancel {
				after.add("%s-%d: no move", p.Topic, p.Partition)
				continue
			}
			after.add("%s-%d: replicas %v", p.Topic, p.Partition, p.Replicas)
		}
	case metadata.RecoverPartitions:
		for _, p := range ev.Partitions {
			name := p.TP.Topic.String()
			if t := img.TopicByID(p.TP.Topic); t != nil {
				name = t.Name
			}
			state(name, p.TP.Partition)
			after.add("%s-%d: the longest of %v; acknowledged records may be lost", name, p.TP.Partition, p.Ends)
		}
	case metadata.RemoveBroker:
		what.add("Broker:%v", ev.Node)
		if b := img.Broker(ev.Node); b != nil {
			before.add("registered with directory %s", b.Directory)
		}
		after.add("not registered")
	default:
		return false
	}
	return true
}

// given and configured are the configs of a topic, sorted.
func given(configs map[string]*string) string {
	plain := map[string]string{}
	for k, v := range configs {
		if v != nil {
			plain[k] = *v
		}
	}
	return configured(plain)
}

func configured(configs map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(configs)) {
		if b.Len() > changeTextMax {
			b.WriteString(" ...")
			break
		}
		fmt.Fprintf(&b, " %s=%s", k, configs[k])
	}
	return b.String()
}
