package isr

// joins says that a replica outside the ISR belongs into it: it stores everything that may have been acknowledged. That is what lies
// below the high watermark, and what lies below the start of this epoch: the watermark that a new leader knows may be behind the
// one that the old leader acknowledged by (I2), and nothing above the epoch's start was. And it is no further behind than a member
// may be and can be heard, else it would be put out again.
func (l *Leader) joins(r *progress) bool {
	if r.member || r.lost || l.silent(r) || r.node == l.self || l.refused {
		return false
	}
	return r.counted() >= max(l.hw, l.epochStart, l.marks.required)
}
