package record

// Compress appends src in the codec's format to dst.
func Compress(codec Codec, dst, src []byte) ([]byte, error) { panic("being written") }

// Decompress appends what src decompresses to, at most limit bytes, to dst.
func Decompress(codec Codec, dst, src []byte, limit int) ([]byte, error) { panic("being written") }

// Recompress returns the batch with its records in another compression.
func Recompress(b Batch, codec Codec) (Batch, error) { panic("being written") }
