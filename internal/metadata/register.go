package metadata

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
)

// register accepts a starting node: it gets a broker epoch, its unsound replicas leave ISR and ELR, and every partition it led gets a new leader
// epoch, in one decision (I3, I4). The node stays fenced until it is ready. The broker's record comes last: until all partitions have been
// changed, the registration has not happened and the node must register again.
func (d *decider) register(ev RegisterBroker) Registered {
	if no := registrationFault(ev); !no.OK() {
		return Registered{Outcome: no}
	}
	old := d.Broker(ev.Node)
	if no := d.mayTake(old, ev); !no.OK() {
		return Registered{Outcome: no}
	}
	faultOf := faultsOf(old, ev)
	gone := d.depart(ev.Node, faultOf)
	epoch := kafka.BrokerEpoch(ev.NextVersion)
	if old != nil {
		epoch = max(epoch, old.Epoch+1)
	}
	d.write(BrokerRecord{
		Node: ev.Node, Epoch: epoch, Incarnation: ev.Incarnation, Directory: ev.Directory, StartNumber: ev.StartNumber, BootID: ev.BootID,
		Rack: ev.Rack, ClusterAddress: ev.ClusterAddress, Listeners: ev.Listeners, Roles: ev.Roles, RegisteredMs: ev.Now.UnixMilli(),
	})
	return Registered{Epoch: epoch, PossibleLoss: gone.possibleLoss, Offline: gone.offline}
}

// registrationFault checks what a registration says about itself.
func registrationFault(ev RegisterBroker) Outcome {
	switch {
	case ev.Node < 1:
		return refused(kafka.InvalidRegistration, "node id %v: want a number from 1", ev.Node)
	case ev.Directory.IsZero():
		return refused(kafka.InvalidRegistration, "node %v has no directory id", ev.Node)
	case len(ev.Listeners) > listenersMax || len(ev.Roles) > rolesMax:
		return refused(kafka.InvalidRegistration, "node %v has %d listeners and %d roles; the limits are %d and %d",
			ev.Node, len(ev.Listeners), len(ev.Roles), listenersMax, rolesMax)
	}
	texts := append([]string{ev.BootID, ev.Rack, ev.ClusterAddress}, ev.Roles...)
	for _, l := range ev.Listeners {
		texts = append(texts, l.Name, l.Host)
	}
	for _, s := range texts {
		if len(s) > textLenMax {
			return refused(kafka.InvalidRegistration, "node %v: a text has %d bytes; the limit is %d", ev.Node, len(s), textLenMax)
		}
	}
	return Outcome{}
}

// mayTake says whether a process may have the node id. A new process on the same disk may at once; anything else could be a second node with the
// same id, and waits until the holder has been silent.
func (d *decider) mayTake(old *Broker, ev RegisterBroker) Outcome {
	for b := range d.Brokers() {
		if b.ID != ev.Node && b.Directory == ev.Directory {
			return refused(kafka.DuplicateBrokerRegistration, "data directory %s belongs to node %v; node %v must have its own", ev.Directory, b.ID, ev.Node)
		}
	}
	if old == nil && ev.Former {
		return refused(kafka.InvalidRegistration, "node %v is not in the cluster any more: it was removed, and its data directory (%s) is from before; "+
			"to add it back, stop it, empty the directory, and start it", ev.Node, ev.Directory)
	}
	if old == nil || sameProcess(old, ev) || old.Directory == ev.Directory && ev.StartNumber > old.StartNumber {
		return Outcome{}
	}
	if ev.HolderSilent >= holderSilence {
		return Outcome{}
	}
	why := fmt.Sprintf("its data directory is %s, that of the registered node is %s", ev.Directory, old.Directory)
	if old.Directory == ev.Directory {
		why = fmt.Sprintf("its start number %d is not above %d: a restored or copied disk, or a second process", ev.StartNumber, old.StartNumber)
	}
	return refused(kafka.DuplicateBrokerRegistration, "node %v is registered and was heard %v ago (%s); it is replaced after %v of silence",
		ev.Node, ev.HolderSilent.Round(time.Millisecond), why, holderSilence)
}

// sameProcess says that a process registers again, because an answer was lost or its session has ended.
func sameProcess(old *Broker, ev RegisterBroker) bool {
	return !ev.Incarnation.IsZero() && old.Incarnation == ev.Incarnation && old.Directory == ev.Directory && old.StartNumber == ev.StartNumber
}

// faultsOf judges each replica of a registering node (I4).
func faultsOf(old *Broker, ev RegisterBroker) func(kafka.TopicPartition) fault {
	faults := map[kafka.TopicPartition]fault{}
	if old == nil || !sameProcess(old, ev) { // else the committed registration has judged them, and they may have caught up since
		for _, tp := range ev.Unclean {
			faults[tp] = unsynced
		}
		for _, tp := range ev.Damaged {
			faults[tp] = lost
		}
	}
	// Another disk, or a copy from before: whatever it holds, it is not what was reported.
	stranger := old != nil && !sameProcess(old, ev) && (old.Directory != ev.Directory || ev.StartNumber <= old.StartNumber)
	return func(tp kafka.TopicPartition) fault {
		if stranger {
			return lost
		}
		return faults[tp]
	}
}
