package systest

import "math/rand/v2"

// nameChange is one step on directories: all its parts happen or none does.
type nameChange []entryChange

// entryChange puts node under name in dir; a nil node removes the name.
type entryChange struct {
	dir  *inode
	name string
	node *inode
}

// perform makes the change visible and pending.
func (c nameChange) perform() {
	for _, p := range c {
		put(p.dir.entries, p.name, p.node)
		p.dir.modTime = timeNow()
	}
}

// commit makes the change durable.
func (c nameChange) commit() {
	for _, p := range c {
		put(p.dir.stored, p.name, p.node)
	}
}

func put(entries map[string]*inode, name string, node *inode) {
	if node == nil {
		delete(entries, name)
		return
	}
	entries[name] = node
}

// syncDir commits the pending changes of dir and returns what stays pending. A rename from another directory takes that
// directory's earlier changes with it: otherwise the old name could come back beside the new one.
func syncDir(journal []nameChange, dir *inode) []nameChange {
	wanted := map[*inode]bool{dir: true}
	take := make([]bool, len(journal))
	for i := len(journal) - 1; i >= 0; i-- {
		for _, p := range journal[i] {
			take[i] = take[i] || wanted[p.dir]
		}
		if take[i] {
			for _, p := range journal[i] {
				wanted[p.dir] = true
			}
		}
	}
	var rest []nameChange
	for i, c := range journal {
		if take[i] {
			c.commit()
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

// survivingChanges picks what a power cut leaves of the journal: a prefix for each directory.
func survivingChanges(journal []nameChange, mode CrashMode, rng *rand.Rand) []nameChange {
	switch mode {
	case LoseAll:
		return nil
	case KeepAll, KillProcess:
		return journal
	}
	left := map[*inode]int{}
	for _, c := range journal {
		for _, p := range c {
			left[p.dir]++
		}
	}
	// In journal order, so that one seed gives one outcome.
	drawn := map[*inode]bool{}
	for _, c := range journal {
		for _, p := range c {
			if !drawn[p.dir] {
				drawn[p.dir] = true
				left[p.dir] = rng.IntN(left[p.dir] + 1)
			}
		}
	}
	var kept []nameChange
	for _, c := range journal {
		ok := true
		for _, p := range c {
			ok = ok && left[p.dir] > 0
		}
		for _, p := range c {
			if !ok {
				left[p.dir] = 0
			} else {
				left[p.dir]--
			}
		}
		if ok {
			kept = append(kept, c)
		}
	}
	return kept
}
