package metadata

import (
	"fmt"
	"math"
	"strconv"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// CanaryTopic is the topic in which nodes measure what a publish takes from end to end. It belongs to the broker, which keeps nothing of worth there.
const CanaryTopic = "__strandline_canary"

// AuditTopic is the topic of the audit trail.
const AuditTopic = "__strandline_audit"

// auditKept is how long the trail is kept, as it is made: entries for a year, at any size. All of it is set on the topic, so that no broker
// config lowers it.
var auditKept = []struct{ key, made string }{
	{"retention.ms", "31536000000"}, {"retention.bytes", "-1"}, {"strandline.minimum.retention.ms", "1209600000"},
}

// AuditConfigs are the configs that the audit trail is made with.
func AuditConfigs() map[string]*string {
	policy := "delete"
	out := map[string]*string{cleanupPolicy: &policy}
	for _, k := range auditKept {
		out[k.key] = &k.made
	}
	return out
}

// Essential says that the broker keeps in this topic what it needs: it is not deleted, and goes on when a disk limit is reached.
func (t *Topic) Essential() bool { return t.Internal && t.Name != CanaryTopic }

// InternalReplicas is how many replicas a topic of the broker gets, at most limit, and how many brokers are up to hold them.
func (i *Image) InternalReplicas(limit int) (replicas, up int) {
	registered := 0
	for broker := range i.Brokers() {
		registered++
		if !broker.Fenced {
			up++
		}
	}
	return min(limit, max(len(i.Voters()), registered)), up
}

// Created reads the answer to the creation of one topic; one that was there already is as good.
func Created(reply any) error {
	results, ok := reply.([]TopicResult)
	if !ok || len(results) != 1 {
		return fmt.Errorf("the controller answered with %T", reply)
	}
	if r := results[0]; !r.OK() && r.Code != kafka.TopicAlreadyExists {
		return fmt.Errorf("%v: %s", r.Code, r.Message)
	}
	return nil
}

// cleanupPolicy is the topic config that says what may be removed.
const cleanupPolicy = "cleanup.policy"

// keptOutcome refuses what would make the groups forget where they are (I8): deleting the topic that holds their offsets, giving it
// another number of partitions (groups are found by hash), or letting retention remove old records of it.
func keptOutcome(t *Topic, what string) Outcome {
	if !t.Essential() {
		return Outcome{}
	}
	return refused(kafka.PolicyViolation, "topic %q belongs to the broker, which would lose what it keeps there: %s is refused", t.Name, what)
}

// alteredOutcome checks the configs that a topic is to have.
func alteredOutcome(t *Topic, next map[string]string) Outcome {
	if !t.Essential() {
		return configOutcome(config.ValidateTopic(next))
	}
	if next[cleanupPolicy] != t.Configs[cleanupPolicy] {
		return keptOutcome(t, "another "+cleanupPolicy)
	}
	if no := configOutcome(config.ValidateTopic(next)); !no.OK() || t.Name != AuditTopic {
		return no
	}
	return shortenedOutcome(t, next)
}

// shortenedOutcome refuses configs that let entries of the audit trail go sooner than it was made with, or than they do now: who may change configs
// could else erase what they did (P45).
func shortenedOutcome(t *Topic, next map[string]string) Outcome {
	for _, k := range auditKept {
		now, set := t.Configs[k.key]
		then, stays := next[k.key]
		floor := k.made
		if set && atLeast(now, floor) {
			floor = now
		}
		switch {
		case set == stays && now == then, stays && atLeast(then, floor):
		case stays:
			return refused(kafka.PolicyViolation, "topic %q is the audit trail, whose entries could go sooner with %s=%s: it takes %s",
				t.Name, k.key, then, orMore(floor))
		default:
			return refused(kafka.PolicyViolation, "topic %q is the audit trail, whose entries could go sooner without %s: it stays set, to %s",
				t.Name, k.key, orMore(floor))
		}
	}
	return Outcome{}
}

// atLeast compares two valid limits, of which -1 is none.
func atLeast(limit, floor string) bool {
	return limitOf(limit) >= limitOf(floor)
}

// orMore says what is accepted above a limit.
func orMore(floor string) string {
	if limitOf(floor) == math.MaxInt64 {
		return floor + " (no limit)"
	}
	return floor + " or more"
}

func limitOf(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		return 0
	case n < 0:
		return math.MaxInt64
	}
	return n
}
