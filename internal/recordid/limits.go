package recordid

const (
	// IDsMax is how many ids one partition remembers: 8,700 records a second for two minutes, the default window. An id takes about 95
	// bytes, so that is 95 MiB.
	IDsMax = 1 << 20

	// twinsByScan is the number of ids in a batch up to which repeats inside it are found by comparing each with each: no memory is needed,
	// and batches with ids are mostly small.
	twinsByScan = 16

	// ringMin is the least capacity of a table that holds anything.
	ringMin = 16

	// shrinkPart is the part of its largest extent to which a table must fall before its memory is given back: Go's maps do not shrink.
	shrinkPart = 8
)
