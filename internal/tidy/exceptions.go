package tidy

// exception excuses one finding. The list may only shrink: an entry without a finding fails the test.
type exception struct {
	check  string
	where  string
	size   int // where the rule is about a size: the largest that is excused
	reason string
}

// exceptionsMax is how many entries there may be; it is only ever lowered.
const exceptionsMax = 1

// exceptions are the places where breaking the rule reads better than keeping it.
var exceptions = []exception{
	{
		check: "type-name", where: "internal/sys/sys.go FileInfo",
		reason: "every Go programmer knows fs.FileInfo, and this is its like",
	},
}
