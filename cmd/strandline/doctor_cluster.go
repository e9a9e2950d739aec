package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"strandline.dev/internal/plan"
)

// clocks are compared with this machine's. When all nodes agree with each other and none with this machine, it is this machine's that is wrong.
func (j *judged) clocks(c *checkup) {
	var off []*probe
	least, most := time.Duration(0), time.Duration(0)
	known := 0
	for _, p := range c.reached() {
		if p.clock.node.IsZero() {
			j.say(stateUnknown, spot{"clock", fmt.Sprintf("node %d", p.node)}, "", "it did not tell its time")
			continue
		}
		skew := p.clock.skew()
		if known++; known == 1 {
			least, most = skew, skew
		}
		least, most = min(least, skew), max(most, skew)
		if skew.Abs() > skewMax {
			off = append(off, p)
		}
	}
	switch {
	case len(off) == 0 && known > 0:
		j.say(stateOK, spot{"clock", fmt.Sprintf("%d nodes", known)}, "", "they agree with this machine within %v", skewMax)
	case known > 1 && len(off) == known && most-least <= skewMax:
		j.say(stateWrong, spot{"clock", "this machine"}, "synchronise the clock of this machine (chronyd, or timedatectl set-ntp true)",
			"%s %s all %d nodes, which agree", most.Abs().Round(time.Millisecond), aheadOrBehind(-most), known)
	default:
		for _, p := range off {
			skew := p.clock.skew()
			j.say(stateWrong, spot{"clock", fmt.Sprintf("node %d", p.node)}, "synchronise its clock (chronyd, or timedatectl set-ntp true)",
				"%s %s this machine", skew.Abs().Round(time.Millisecond), aheadOrBehind(skew))
		}
	}
}

func aheadOrBehind(d time.Duration) string {
	if d < 0 {
		return "behind"
	}
	return "ahead of"
}

// disks are those with the data directories.
func (j *judged) disks(c *checkup) {
	const room = "make room: enlarge the file system, or lower retention.ms (and strandline.minimum.retention.ms) of the largest topics, see `strandline topic set`"
	for _, p := range c.reached() {
		where, d := fmt.Sprintf("node %d", p.node), p.disk
		switch {
		case d.err != nil:
			j.say(stateUnknown, spot{"disk", where}, "", "%s", reason(d.err))
			continue
		case d.lost > 0:
			j.say(stateWrong, spot{"disk", where}, "see the node's log for the file and what to do; `strandline log verify DIR` lists the damage",
				"%d replicas could not be opened", d.lost)
		}
		used, limit := d.room.used, d.room.limit
		free := plan.Bytes(float64(d.usable)) + " of " + plan.Bytes(float64(d.total)) + " is free"
		switch {
		case d.room.refusal != "":
			j.say(stateWrong, spot{"disk", where}, room+", or raise disk.limit.*", "records are refused: %s", d.room.refusal)
		case limit > 0 && float64(limit-used) < diskWarnPart*float64(limit):
			j.say(stateWarning, spot{"disk", where}, room+", or raise disk.limit.*", "%s of the %s are used at which records are refused",
				plan.Bytes(float64(used)), plan.Bytes(float64(limit)))
		case !d.known:
			j.say(stateUnknown, spot{"disk", where}, "", "its room is not known")
		case d.usable < min(diskReserve, d.total/16):
			j.say(stateWrong, spot{"disk", where}, room, "%s: records are refused, or soon will be", free)
		case float64(d.usable) < diskWarnPart*float64(d.total):
			j.say(stateWarning, spot{"disk", where}, room, "%s", free)
		default:
			j.say(stateOK, spot{"disk", where}, "", "%s", free)
		}
	}
}

// limits are those of processes, and of what topics are made with.
func (j *judged) limits(c *checkup) {
	open, allowed := c.files["process_open_fds"], c.files["process_max_fds"]
	switch {
	case !c.settings.httpGiven && allowed == 0:
		j.say(stateUnknown, spot{"limits", "open files"}, "give --http URL of a node", "only the metrics of a node tell them")
	case allowed == 0:
		j.say(stateUnknown, spot{"limits", c.settings.http}, "see that --http is the HTTP address of a node", "its metrics could not be read")
	case open > filesWarnPart*allowed:
		j.say(stateWrong, spot{"limits", c.settings.http}, fmt.Sprintf("raise it to %.0f or more (LimitNOFILE= of the systemd unit, or ulimit -n)", 4*allowed),
			"%.0f files and connections are open of %.0f that the process may", open, allowed)
	default:
		j.say(stateOK, spot{"limits", c.settings.http}, "", "%.0f files and connections are open of %.0f that the process may", open, allowed)
	}
	if c.view == nil {
		return
	}
	usable := 0
	for _, n := range c.view.Nodes {
		if c.view.usable(n.ID) {
			usable++
		}
	}
	for _, p := range c.reached() {
		if p.replicas > usable {
			j.say(stateWrong, spot{"limits", fmt.Sprintf("node %d", p.node)}, fmt.Sprintf("set default.replication.factor to %d under kafka:, or add nodes", usable),
				"default.replication.factor is %d, and %d nodes can take replicas: topics that are created without a number are refused", p.replicas, usable)
		}
	}
}

// replication is what `cluster health` says, and how much may be lost.
func (j *judged) replication(c *checkup) {
	if c.view == nil {
		j.say(stateUnknown, spot{"replication", "the cluster"}, "", "%s", reason(c.viewErr))
		return
	}
	v := *c.view
	v.Nodes = slices.Clone(v.Nodes)
	for i := range v.Nodes {
		v.Nodes[i].Silent = "" // the addresses that lead nowhere have been named
	}
	h := judge(&v)
	for _, problem := range h.Problems {
		j.say(stateWrong, spot{"replication", "cluster " + v.ClusterID}, "", "%s", problem)
	}
	if len(v.Nodes) > 2 && len(v.Controllers) < 3 {
		j.say(stateWarning, spot{"replication", "controllers"}, "make it three: `strandline cluster add-controller NODE`",
			"%d of %d nodes: the loss of one stops changes and elections", len(v.Controllers), len(v.Nodes))
	}
	copies := map[string]int{}
	for _, p := range v.Partitions {
		if n, seen := copies[p.Topic]; !p.Internal && (!seen || len(p.Replicas) < n) {
			copies[p.Topic] = len(p.Replicas)
		}
	}
	var single, tight []string
	for _, topic := range slices.Sorted(maps.Keys(copies)) {
		switch n := copies[topic]; {
		case n == 1:
			single = append(single, topic)
		case c.minISR[topic] >= n:
			tight = append(tight, topic)
		}
	}
	if len(single) > 0 && len(v.Nodes) > 1 {
		j.say(stateWarning, spot{"replication", firstOf(single)}, "`strandline partition move TOPIC --to A,B,C --change-factor` gives it more",
			"one copy: a lost disk loses it, a node that is down stops it")
	}
	if len(tight) > 0 {
		j.say(stateWarning, spot{"replication", firstOf(tight)}, "`strandline topic set TOPIC min.insync.replicas=N` with one less than its replicas",
			"min.insync.replicas is the number of replicas: publishing stops with any node")
	}
	if c.viewErr != nil {
		j.say(stateUnknown, spot{"replication", "topics"}, "", "%s", reason(c.viewErr))
	} else if h.Healthy {
		j.say(stateOK, spot{"replication", "cluster " + v.ClusterID}, "", "%d partitions, all replicas in sync; %d of %d nodes are controllers", len(v.Partitions), len(v.Controllers), len(v.Nodes))
	}
}
