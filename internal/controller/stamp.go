package controller

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// stamp returns the event with what only the shell has: the time of this node's wall clock, random ids where the caller
// minted none, seeds, and the index the records will get.
func (c *Controller) stamp(ev metadata.Event, next uint64) (metadata.Event, error) {
	now := c.wall.Now()
	switch e := ev.(type) {
	case metadata.RegisterBroker:
		e.Now, e.NextVersion = now, next
		if c.peers != nil { // whatever the newcomer says of it
			e.HolderSilent = c.sessions.silent(e.Node, time.Now())
		}
		return e, nil
	case metadata.BrokerReady:
		e.Now = now
		c.sessions.touch(e.Node, time.Now()) // its session begins now, not with its first heartbeat
		return e, nil
	case metadata.FenceBroker:
		e.Now = now
		return e, nil
	case metadata.CreateTopics:
		return stampCreate(e, now)
	case metadata.CreatePartitions:
		seed, err := randomSeed()
		e.Now, e.Seed = now, seed
		return e, err
	case metadata.DeleteTopics:
		e.Now = now
		return e, nil
	case metadata.RestoreTopic:
		e.Now = now
		return e, nil
	case metadata.PurgeTopic:
		e.Now = now
		return e, nil
	case metadata.ExpireTrash:
		e.Now = now
		return e, nil
	case metadata.AlterConfigs:
		e.Now = now
		return e, nil
	case metadata.ContinueDrains:
		seed, err := randomSeed()
		e.Seed = seed
		return e, err
	case metadata.RaiseInternal:
		seed, err := randomSeed()
		e.Seed = seed
		return e, err
	case metadata.AlterISR:
		e.Now = now
		return e, nil
	case metadata.FinishTopics:
		e.Now = now
		return e, nil
	}
	return ev, nil
}

func stampCreate(e metadata.CreateTopics, now time.Time) (metadata.Event, error) {
	seed, err := randomSeed()
	if err != nil {
		return nil, err
	}
	e.Now, e.Seed = now, seed
	return mintTopics(e)
}

// mintTopics mints the ids that are missing, in a copy: the caller's list may be in use for its answer.
func mintTopics(e metadata.CreateTopics) (metadata.Event, error) {
	e.Topics = slices.Clone(e.Topics)
	for i := range e.Topics {
		if !e.Topics[i].ID.IsZero() {
			continue
		}
		var err error
		if e.Topics[i].ID, err = mintTopicID(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// mintTopicID returns a random topic id. It is none of the reserved ones, which are nearly zero, and its text does not begin
// with "-": command lines would take it for a flag.
func mintTopicID() (kafka.TopicID, error) {
	for {
		var id kafka.TopicID
		if _, err := rand.Read(id[:]); err != nil {
			return id, err
		}
		if id[0] != 0 && id.String()[0] != '-' {
			return id, nil
		}
	}
}

func randomSeed() (uint64, error) {
	var b [8]byte
	_, err := rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:]), err
}

// administrative says whether an event is a change that somebody asked for, rather than part of the cluster's own life.
func administrative(ev metadata.Event) bool {
	switch ev.(type) {
	case metadata.CreateTopics, metadata.DeleteTopics, metadata.RestoreTopic, metadata.PurgeTopic, metadata.CreatePartitions, metadata.AlterConfigs,
		metadata.ElectLeaders, metadata.AlterAssignments, metadata.DrainBroker, metadata.RemoveBroker, metadata.RecoverPartitions,
		metadata.CreateACLs, metadata.DeleteACLs, metadata.AlterScram, metadata.AlterQuotas:
		return true
	}
	return false
}
