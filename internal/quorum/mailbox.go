package quorum

import "sync"

// mailbox passes values from one goroutine to another without blocking the sender, so loop and append goroutine can never
// wait for each other. Its length is bounded by what raft lets be in flight (I14). The lock is a leaf, held for a copy.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	// ready holds a token when there may be items.
	ready chan struct{}
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{ready: make(chan struct{}, 1)}
}

// push adds a value.
func (m *mailbox[T]) push(v T) {
	m.mu.Lock()
	m.items = append(m.items, v)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take returns what has come in, oldest first.
func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items
}
