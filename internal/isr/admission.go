package isr

import "strandline.dev/internal/kafka"

// Admits says whether an acks=all publish may be appended: the committed ISR has at least the effective min ISR members.
// Members of an open proposal never count (I1). A partition without a minimum still needs one member.
func (l *Leader) Admits() bool {
	return len(l.state.ISR) >= max(1, int(l.state.EffectiveMinISR))
}

// EpochStart is the written end of the log when this epoch began.
func (l *Leader) EpochStart() kafka.Offset { return l.epochStart }

// Settled says whether the watermark has reached the start of the epoch. Before that it may be lower than what an earlier
// leader has shown, so it is given to nobody as "latest" (I2, C007).
func (l *Leader) Settled() bool { return l.hw >= l.epochStart }

// Withheld says whether consumer fetches are parked whatever their offset, because the answer would show a watermark that
// is not settled. Below the effective min ISR it may never settle; then what is below the known watermark is served rather
// than nothing (I2: the one documented exception to "never observed going backwards").
func (l *Leader) Withheld() bool { return !l.Settled() && l.Admits() }
