package record

// Builder collects records and builds a batch of them.
type Builder struct {
	codec Codec
}

// NewBuilder returns an empty builder of batches with the given compression.
func NewBuilder(codec Codec) *Builder { return &Builder{codec: codec} }

// Add appends a record; ts is in milliseconds since the Unix epoch.
func (bu *Builder) Add(ts int64, key, value []byte, headers []Header) { panic("being written") }

// Count is the number of records added since the last Reset.
func (bu *Builder) Count() int { panic("being written") }

// Size is the number of bytes of the batch as it would be without compression.
func (bu *Builder) Size() int { panic("being written") }

// Reset forgets the records and keeps the buffer.
func (bu *Builder) Reset() { panic("being written") }

// Build returns the batch in bytes of its own. It has base offset 0, no leader epoch (-1) and no producer.
func (bu *Builder) Build() Batch { panic("being written") }
