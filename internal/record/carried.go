package record

// EachWith calls visit for the records of the batch that have a non-empty value in the header of that name, in order; of several of one
// name the last counts, as in Kafka's own clients. What visit gets are views as from Records, without Headers, good until it returns.
// maxDecompressed is as for Records, and so are the errors.
func (b Batch) EachWith(name string, maxDecompressed int, visit func(r *Record, value []byte)) error {
	if b.Count() == 0 || name == "" {
		return nil
	}
	payload, release, err := b.plain(maxDecompressed)
	if err != nil {
		return err
	}
	defer release()
	c := cursor{buf: payload, want: name}
	var r Record
	for range b.Count() {
		if _, err := c.record(&r); err != nil {
			return err
		}
		if len(c.got) > 0 {
			visit(&r, c.got)
		}
	}
	return c.finish()
}
