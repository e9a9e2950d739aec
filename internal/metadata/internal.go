package metadata

import (
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// cleanupPolicy is the topic config that says what may be removed.
const cleanupPolicy = "cleanup.policy"

// keptOutcome refuses what would make the groups forget where they are (I8): deleting the topic that holds their offsets, giving it
// another number of partitions (groups are found by hash), or letting retention remove old records of it.
func keptOutcome(t *Topic, what string) Outcome {
	if !t.Internal {
		return Outcome{}
	}
	return refused(kafka.PolicyViolation, "topic %q belongs to the broker, which would lose what it keeps there: %s is refused", t.Name, what)
}

// alteredOutcome checks the configs that a topic is to have.
func alteredOutcome(t *Topic, next map[string]string) Outcome {
	if !t.Internal {
		return configOutcome(config.ValidateTopic(next))
	}
	if next[cleanupPolicy] != t.Configs[cleanupPolicy] {
		return keptOutcome(t, "another "+cleanupPolicy)
	}
	return configOutcome(config.ValidateInternal(next))
}
