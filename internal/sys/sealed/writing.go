package sealed

// writing is the memory of one write: frames on their way to the file. It is used again, and not left to a sync.Pool: a node that publishes
// leaves little garbage besides, so the collector would run for these buffers alone, and would empty the pool.
type writing struct {
	out []byte // at most writeMax
	ad  []byte // scratch of appendFrame
}

// writings are free.
var writings = make(chan *writing, writingsMax)

func takeWriting() *writing {
	select {
	case w := <-writings:
		return w
	default:
		return &writing{out: make([]byte, 0, writeMax)}
	}
}

func (w *writing) put() {
	w.out = w.out[:0]
	select {
	case writings <- w:
	default:
	}
}

// seal appends a frame.
func (w *writing) seal(s *sealer, kind uint8, plain int64, bytes []byte) {
	w.out = s.appendFrame(w.out, &w.ad, kind, plain, bytes)
}
