package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// session is this process's registration.
type session struct {
	epoch kafka.BrokerEpoch // 0 before the first
	// ready is the version that showed the broker unfenced, 0 before. An answer made from an older Image says nothing about it.
	ready uint64
}

// Run sends heartbeats until ctx ends, and registers anew when the session is lost. Call Register for the first time; heartbeats before that only
// find the active controller.
func (l *Link) Run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { l.keepRegistered(ctx) })
	if l.cfg.Dev {
		beside.Go(func() { l.keepRecovered(ctx) })
	}
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	for {
		l.beat(ctx)
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
	}
}

// keepRegistered registers whenever the session is lost. It is apart from the heartbeats, which go on meanwhile.
func (l *Link) keepRegistered(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.again:
		}
		if err := l.Register(ctx); err != nil && ctx.Err() == nil {
			l.cfg.Log.Error("this broker is not registered any more", "error", err)
		}
	}
}

// beat sends one heartbeat, and a second one at once when the first went to a node that knows better.
func (l *Link) beat(ctx context.Context) {
	for range 2 {
		sent := l.current()
		to := l.target()
		m := heartbeat{Node: l.cfg.Node, Epoch: sent.epoch}
		var a heartbeatAnswer
		switch {
		case to == l.cfg.Node:
			a = l.cfg.Controller.beat(m)
		case to == kafka.NoNode || l.cfg.Peers == nil:
			return
		default:
			within, cancel := context.WithTimeout(ctx, heartbeatMax)
			err := l.call(within, to, 0, &m, &a)
			cancel()
			if err != nil {
				return
			}
		}
		if a.Standing != notActive {
			l.heard(to, sent, a)
			return
		}
		l.moved(to, a.Active)
	}
}

// heard takes the active controller's answer to a heartbeat.
func (l *Link) heard(from kafka.NodeID, sent session, a heartbeatAnswer) {
	l.mu.Lock()
	l.hint, l.answered = from, time.Now()
	now := l.session
	// A session that was not ready yet, or is another one by now, has its registration under way.
	lost := !l.leaving && now.epoch == sent.epoch && now.ready > 0 && a.Version >= now.ready && (a.Standing == unknown || a.Standing == fenced)
	if lost {
		l.session.ready = 0
	}
	l.mu.Unlock()
	if !lost {
		return
	}
	l.cfg.Log.Warn("the controller does not count on this broker any more; registering again", "epoch", sent.epoch, "registered", a.Standing == fenced)
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// Leave says that this process is about to stop: it is not registered again when it is fenced.
func (l *Link) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = true
}

func (l *Link) current() session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Waiting says for what this node waits before it is registered and unfenced, or "".
func (l *Link) Waiting() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waits
}

func (l *Link) wait(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = why
}

// Register registers this process and has it unfenced. It tries until ctx ends, or until the controller refuses for good. Meanwhile Waiting says
// why it is not done.
func (l *Link) Register(ctx context.Context) error {
	defer l.wait("")
	l.wait("the active controller")
	lines := time.NewTicker(waitLineEvery)
	defer lines.Stop()
	for {
		final, err := l.register(ctx)
		if err == nil || final {
			return err
		}
		l.wait(err.Error())
		select {
		case <-ctx.Done():
			return fmt.Errorf("not registered: %w", err)
		case <-lines.C:
			l.cfg.Log.Warn("this broker waits to be registered", "why", err.Error())
		case <-time.After(retryMax):
		}
	}
}

// register is one attempt. final means that trying again cannot help.
func (l *Link) register(ctx context.Context) (final bool, err error) {
	if err := l.cfg.Unfit(); err != nil {
		return false, err
	}
	ev, err := l.cfg.Registration()
	if err != nil {
		return true, err
	}
	reply, version, err := l.Submit(ctx, ev)
	if err != nil {
		return false, err
	}
	r, ok := reply.(metadata.Registered)
	if !ok {
		return true, fmt.Errorf("the controller answered a registration with %T", reply)
	}
	if !r.OK() {
		return r.Code != kafka.DuplicateBrokerRegistration, fmt.Errorf("refused: %s", r.Message)
	}
	l.begin(session{epoch: r.Epoch})
	if err := l.cfg.Registered(ctx, r, version); err != nil {
		return false, err
	}
	reply, version, err = l.Submit(ctx, metadata.BrokerReady{Node: l.cfg.Node, Epoch: r.Epoch})
	if err != nil {
		return false, err
	}
	ready, ok := reply.(metadata.BrokerChanged)
	if !ok {
		return true, fmt.Errorf("the controller answered %T", reply)
	}
	if !ready.OK() { // it was fenced or registered by another attempt in between
		return false, fmt.Errorf("not unfenced: %s", ready.Message)
	}
	l.begin(session{epoch: r.Epoch, ready: version})
	return false, nil
}

func (l *Link) begin(s session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
}
