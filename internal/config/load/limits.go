package load

const (
	// fileBytesMax bounds a configuration file, in bytes: real ones are a few kilobytes.
	fileBytesMax = 1 << 20
	// depthMax bounds the nesting of the file: the deepest key of contract and table has three levels.
	depthMax = 16
	// keysMax bounds the keys of the file: there are fewer than 200 settings.
	keysMax = 4096
)
