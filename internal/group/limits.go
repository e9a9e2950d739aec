package group

import (
	"math"
	"time"
)

// RetentionFloor is the shortest time for which the offsets of a group without members are kept, whatever is configured: a batch
// job that runs every other week must find its place again.
const RetentionFloor = 14 * 24 * time.Hour

// Defaults of Config.
const (
	sessionMinDefault       = 6 * time.Second
	sessionMaxDefault       = 30 * time.Minute
	maxSizeDefault          = math.MaxInt32
	protocolBytesDefault    = 1 << 20
	consumerSessionDefault  = 45 * time.Second
	consumerIntervalDefault = 5 * time.Second
	recordBytesMaxDefault   = 8 << 20 // 5,000 members with 1.6 KiB each of ids, subscription and assignment
)

// Limits (I14). They bound what one client can make a shard keep.
const (
	// groupIDBytesMax is the longest string that the key of a record can hold.
	groupIDBytesMax = math.MaxInt16
	// nameBytesMax bounds instance ids, protocol types and protocol names: records hold them with a 16-bit length, and clients use
	// names of a few words. It is also Kafka's limit for topic names.
	nameBytesMax = 249
	// clientBytesMax is how much of a client id and of a host is kept; it leaves room for the random part of a member id.
	clientBytesMax = 1024
	// memberIDBytesMax bounds the ids that members of consumer groups make for themselves; clients use UUIDs.
	memberIDBytesMax = 1024
	// subscriptionBytesMax bounds all that a member of a consumer group says about itself: 4,000 topics of the longest names.
	subscriptionBytesMax = 1 << 20
	// patternBytesMax bounds a regular expression: a hundred names.
	patternBytesMax = 4096
	// patternStatesMax bounds what an expression becomes: the longest that repeats nothing has about as many states as bytes. A look at a
	// topic costs up to states times bytes of the name, 20 ms at most.
	patternStatesMax = 5000
	// reasonBytesMax is how much of a client's reason is kept; Kafka's clients cut theirs at this length too.
	reasonBytesMax = 255
	// protocolsMax is how many protocols a member may offer. Clients offer one per assignor, so at most a handful.
	protocolsMax = 100
	// groupProtocolBytesMax bounds the protocols of all members of a group, in bytes.
	groupProtocolBytesMax = 64 << 20
	// pendingMax is how many members may have been told their id without having joined with it.
	pendingMax = 10_000
	// groupsMax is how many groups a shard holds: with 50 shards, five million.
	groupsMax = 100_000
	// recordsMax is how many records one Tick makes; the next one goes on. It bounds the batch that expiry and purges append.
	recordsMax = 1000
	// seekMax is how many partitions one seek moves; it bounds its records, two for each.
	seekMax = 20_000
	// growthsMax is how many topics that have grown wait for their commits at a time.
	growthsMax = 10_000
	// timersMax is how many timers one Tick lets act; the next one goes on, and requests get their turn between.
	timersMax = 10_000
	// looksMax is after how many offsets of empty groups one Tick stops looking for old ones, for the same reason.
	looksMax = 20_000
)

// Times.
const (
	// newMemberMax is how long a new member waits for its first rebalance to complete before it is taken for dead.
	newMemberMax = 5 * time.Minute
	// emptyGroupKept is how long a group without members and offsets stays in lists: Kafka's interval of checks.
	emptyGroupKept = 10 * time.Minute
	// expiryCheckMin and expiryCheckMax bound the time between two looks at the offsets of an empty group. The upper bound makes a
	// changed retention of a topic count within a day.
	expiryCheckMin = 10 * time.Minute
	expiryCheckMax = 24 * time.Hour
)

// withDefaults fills what is not set.
func (c Config) withDefaults() Config {
	setDefault(&c.SessionMin, sessionMinDefault)
	setDefault(&c.SessionMax, sessionMaxDefault)
	setDefault(&c.MaxSize, maxSizeDefault)
	setDefault(&c.ProtocolBytesMax, protocolBytesDefault)
	setDefault(&c.RecordBytesMax, recordBytesMaxDefault)
	setDefault(&c.ConsumerSession, consumerSessionDefault)
	setDefault(&c.ConsumerInterval, consumerIntervalDefault)
	setDefault(&c.ConsumerMaxSize, maxSizeDefault)
	if len(c.Assignors) == 0 {
		c.Assignors = []string{uniformAssignor, rangeAssignor}
	}
	c.OffsetRetention = max(c.OffsetRetention, RetentionFloor)
	return c
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
