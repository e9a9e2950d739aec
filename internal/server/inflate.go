package server

import (
	"runtime"

	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
)

// inflation bounds how many batches are decompressed at the same time (I14, C088). The memory budget counts bytes as they come; one
// compressed batch may take thirty times as many while it is looked at, and a thousand connections can send one each. Decompression needs
// a core, so more at a time than there are cores would not end sooner.
type inflation chan struct{}

func newInflation() inflation { return make(inflation, min(inflationsMax, runtime.GOMAXPROCS(0))) }

// begin waits for a place and returns what gives it back. Nobody waits inside, so the wait is short.
func (f inflation) begin() (end func()) {
	f <- struct{}{}
	return func() { <-f }
}

// judge validates a batch and brings it into the topic's compression. The size that the topic allows holds for what is stored, too: a
// megabyte of zeros in gzip must not become 30 of them uncompressed.
func (s *Server) judge(b record.Batch, to *target) (record.Batch, record.Facts, error) {
	anew := to.recompress && b.Codec() != to.codec
	if anew || b.Codec() != record.None {
		defer s.inflate.begin()()
	}
	facts, err := record.Validate(b, to.rules)
	if err != nil || !anew {
		return b, facts, err
	}
	most, limit := to.rules.MaxBatchBytes, 0
	if to.codec == record.None {
		limit = most // the batch would be no smaller than its records
	}
	out, err := record.Recompress(b, to.codec, limit)
	if err == nil && most > 0 && len(out) > most {
		return nil, facts, record.ErrTooLarge
	}
	return out, facts, err
}

// recordIDs reads the record ids of a batch that has been judged; none where the topic remembers none or no record has a header, at no cost.
func (s *Server) recordIDs(b record.Batch, facts record.Facts, to *target) ([]recordid.Carried, error) {
	if to.idHeader == "" || !facts.HasHeaders {
		return nil, nil
	}
	if b.Codec() != record.None {
		defer s.inflate.begin()()
	}
	return recordid.Read(b, to.idHeader, record.DecompressedLimit(max(to.rules.MaxBatchBytes, len(b))))
}
