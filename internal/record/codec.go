package record

import "strconv"

// Codec is a compression of the records of a batch, numbered as in the batch's attributes.
type Codec uint8

// The codecs of the protocol.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

var codecNames = [...]string{None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", Zstd: "zstd"}

// Known says whether the codec exists.
func (c Codec) Known() bool { return int(c) < len(codecNames) }

// String returns the codec's name as topic configs use it.
func (c Codec) String() string {
	if c.Known() {
		return codecNames[c]
	}
	return "codec " + strconv.Itoa(int(c))
}

// ParseCodec reads the name that String writes, and "uncompressed" for None as topic configs have it. Error: ErrCodec.
func ParseCodec(name string) (Codec, error) {
	for i, n := range codecNames {
		if n == name {
			return Codec(i), nil
		}
	}
	if name == "uncompressed" {
		return None, nil
	}
	return None, ErrCodec
}
