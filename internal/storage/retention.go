package storage

import (
	"time"

	"strandline.dev/internal/kafka"
)

// ApplyRetention removes old segments and returns the log start, which is on disk, also with an error. Only a leader calls it; followers advance their start to the
// leader's. It removes whole sealed segments from the oldest on, never past hw, and never one whose youngest record is younger
// than the minimum age (I9): a record may live longer than asked, never shorter. Ages count from the append time, so a client's
// clock decides nothing (C043). An active segment that is due by age is rolled first.
func (l *Log) ApplyRetention(p RetentionPolicy, hw kafka.Offset, now time.Time) (kafka.Offset, error) {
	l.lockIO()
	defer l.unlockIO()
	nowMs := now.UnixMilli()
	l.mu.Lock()
	if err := l.writableLocked(); err != nil {
		start := l.mu.start
		l.mu.Unlock()
		return start, err
	}
	if err := l.rollDueLocked(p, hw, nowMs); err != nil {
		start := l.mu.start
		l.mu.Unlock()
		return start, err
	}
	segments, size := l.mu.segments[:len(l.mu.segments)-1], l.mu.size
	start := l.mu.start
	// A full disk, for one, may have stopped an earlier removal half way.
	unfinished := len(l.belowStartLocked()) > 0 || l.mu.startSaved < start
	l.mu.Unlock()

	cut := start
	for _, s := range segments {
		l.mu.Lock()
		end, bytes, last := s.end, s.size, l.timesLocked(s).lastAppendMs
		l.mu.Unlock()
		if end > hw || !p.removes(nowMs, last, size, bytes) {
			break
		}
		cut, size = end, size-bytes
	}
	if cut == start && !unfinished {
		return start, nil
	}
	err := l.advanceIO(cut)
	return l.Start(), err
}

// removes decides on the oldest segment left: last is its youngest append time, size what the log holds, bytes what the segment
// does.
func (p RetentionPolicy) removes(nowMs, last, size, bytes int64) bool {
	age := nowMs - last
	if last == maxMs || (p.MinimumAge > 0 && age < p.MinimumAge.Milliseconds()) {
		return false // I9: the promise comes before every limit
	}
	if p.Age > 0 && age > p.Age.Milliseconds() {
		return true
	}
	return p.Bytes > 0 && size-bytes >= p.Bytes
}

// rollDueLocked seals an active segment whose age is up, by segment age or because all of it may go.
func (l *Log) rollDueLocked(p RetentionPolicy, hw kafka.Offset, nowMs int64) error {
	s := l.activeLocked()
	if s.size == 0 {
		return nil
	}
	age := nowMs - s.times.lastAppendMs
	expired := p.Age > 0 && age > p.Age.Milliseconds() && s.end <= hw && (p.MinimumAge <= 0 || age >= p.MinimumAge.Milliseconds())
	if expired || l.agedLocked(s, nowMs) {
		return l.rollLocked()
	}
	return nil
}
