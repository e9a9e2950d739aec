package server

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// headed is a frame of this key and version with that body.
func headed(key, version int16, body ...byte) []byte {
	return framed(append(headerOf(key, version), body...))
}

// hostileFrames are bytes that are no request.
var hostileFrames = []hostileCase{
	{name: "K01_size_0", attack: func(a *attack) { a.closes("size 0", reasonFrameSize, sizeFrame(0)) }},
	{name: "K02_size_negative", attack: func(a *attack) {
		a.closes("size -1", reasonFrameSize, sizeFrame(-1))
		a.closes("smallest size", reasonFrameSize, sizeFrame(math.MinInt32))
	}},
	{name: "K03_size_max", attack: func(a *attack) { a.closes("size max", reasonFrameSize, sizeFrame(math.MaxInt32)) }},
	{
		name: "K04_size_above_the_cap", attack: k04,
		today: "this listener asks for no login, so the cap is socket.request.max.bytes (a stranger's: TestK4_K56_StrangeMessages)",
	},
	{name: "K06_http", attack: k06},
	{name: "K07_tls", attack: k07, today: "plaintext on a TLS listener: TestR147_K7_TLSListener"},
	{name: "K08_unknown_key", attack: k08},
	{name: "K62_keys_of_brokers", attack: k62},
	{name: "K09_api_versions_from_the_future", attack: k09},
	{name: "K10_version_outside_the_range", attack: k10},
	{name: "K11_client_id_length", attack: func(a *attack) {
		a.closes("length -2", reasonMalformed, framed([]byte{0, 3, 0, 9, 0, 0, 0, 0, 0xff, 0xfe, 0}))
		a.closes("longer than the rest", reasonMalformed, framed([]byte{0, 3, 0, 9, 0, 0, 0, 0, 0x7f, 0xff, 'x'}))
		a.closes("header cut short", reasonMalformed, framed([]byte{0, 3}))
		a.closes("header without its tags", reasonMalformed, framed(headerOf(wire.KeyMetadata, 9)))
	}},
	{name: "K13_body_too_short", attack: func(a *attack) { a.bodies(func(body []byte) []byte { return body[:len(body)-1] }) }},
	{name: "K14_trailing_bytes", attack: func(a *attack) {
		// librdkafka leaves up to three bytes behind a flexible Metadata request.
		a.bodies(func(body []byte) []byte { return append(body, 'x', 'x', 'x', 'x') })
	}},
	{name: "K15_array_length_max", attack: k15},
	{name: "K17_nested_empty_arrays", attack: k17},
	{name: "K18_overlong_varint", attack: k18},
}

func k04(a *attack) {
	limit := int32(a.b.server.broker().SocketRequestMaxBytes)
	a.closes("a byte above the cap", reasonFrameSize, sizeFrame(limit+1))
	for range 20 { // at the cap, and then nothing: it holds no more than what was sent
		a.dial().write(append(sizeFrame(limit), headerOf(wire.KeyProduce, 9)...))
	}
	c := a.dial()
	a.code("metadata meanwhile", ask[*kmsg.MetadataResponse](c, newMetadata(12, "target")).Topics[0].ErrorCode, kafka.None)
}

func k06(a *attack) {
	for _, verb := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /v1 HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		c := a.dial()
		c.write([]byte(verb))
		c.closed()
		if line := a.line(verb[:4], c, reasonHTTP); !strings.Contains(line, "http address of this node") {
			a.Errorf("the line does not say what to do: %s", line)
		}
	}
}

func k07(a *attack) {
	c := a.dial()
	c.write([]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01})
	c.closed()
	if line := a.line("ClientHello", c, reasonTLS); !strings.Contains(line, "security.protocol=PLAINTEXT") {
		a.Errorf("the line does not say what to do: %s", line)
	}
	a.closes("SSL 2 hello", reasonFrameSize, []byte{0x80, 0x2e, 0x01, 0x00, 0x02})
}

// k08: one line names client, key and version.
func k08(a *attack) {
	for _, one := range []struct{ key, version int16 }{{-1, 0}, {9999, 3}, {math.MinInt16, 0}, {math.MaxInt16, math.MaxInt16}} {
		c := a.dial()
		c.id = "strange-client"
		c.send(rawRequest{key: one.key, version: one.version})
		c.closed()
		line := a.line("unknown key", c, reasonUnknownAPI)
		for _, want := range []string{"key=" + itoa(one.key), "version=" + itoa(one.version), "client=strange-client"} {
			if !strings.Contains(line, want) {
				a.Errorf("key %d: no %q in %s", one.key, want, line)
			}
		}
	}
	c := a.dial() // transactions, SASL and share groups are unknown keys until they exist
	for _, key := range []int16{17, 24, 26, 28, 30, 36, 68, 76, 78, 79} {
		c.id = "later"
		c.send(rawRequest{key: key})
		c.closed()
		c = a.dial()
	}
}

// k62: what only brokers say to each other, in Kafka (Vote, AlterPartition, BrokerHeartbeat and so on) and here, is no request of this port.
func k62(a *attack) {
	keys := []int16{4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}
	for key := int16(20001); key <= 20040; key++ { // docs/formats/peer.md
		keys = append(keys, key)
	}
	for _, key := range keys {
		for _, version := range []int16{0, 1} {
			c := a.dial()
			c.id = "impostor"
			c.send(rawRequest{key: key, version: version, body: make([]byte, 64)})
			c.closed()
		}
	}
	a.nothingStored()
}

func k09(a *attack) {
	c := a.dial()
	for _, version := range []int16{99, math.MaxInt16} {
		c.send(rawRequest{key: wire.KeyApiVersions, version: version, body: []byte("cannot be parsed")})
		resp := c.read(kmsg.NewPtrApiVersionsRequest(), c.next-1).(*kmsg.ApiVersionsResponse)
		a.code("ApiVersions", resp.ErrorCode, kafka.UnsupportedVersion)
		if len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != wire.KeyApiVersions {
			a.Errorf("keys %+v, want ApiVersions alone", resp.ApiKeys)
		}
	}
	a.closes("negative version", reasonUnknownAPI, headed(wire.KeyApiVersions, -1)) // no layout has it
}

func k10(a *attack) {
	c := a.dial()
	for _, api := range served() {
		for v := int16(0); v < api.Min; v++ {
			req := request(api.Key, "target", a.topic, a.b.newBatch("x"))
			req.SetVersion(v)
			a.code(fmt.Sprint(api.Name, " version ", v), int16(firstError(ask[kmsg.Response](c, req))), kafka.UnsupportedVersion)
		}
		if api.Key == wire.KeyApiVersions {
			continue
		}
		above := a.dial()
		above.send(rawRequest{key: api.Key, version: api.Max + 1})
		above.closed()
		if api.Key < 3 { // the log takes ten lines of a kind
			a.line(api.Name, above, reasonVersion)
		}
	}
}

// bodies sends the spoilt body of a request of each API, at its lowest and its highest version. Each connection is closed.
func (a *attack) bodies(spoil func([]byte) []byte) {
	n := 0
	for _, api := range served() {
		for _, version := range []int16{api.Min, api.Max} {
			req := request(api.Key, "target", a.topic, a.b.newBatch("x"))
			req.SetVersion(version)
			body := req.AppendTo(nil)
			if len(body) == 0 {
				continue
			}
			c := a.dial()
			c.send(rawRequest{key: api.Key, version: version, flexible: req.IsFlexible(), body: spoil(body)})
			c.closed()
			if n++; n <= peerLinesMax {
				a.line(fmt.Sprint(api.Name, " version ", version), c, reasonMalformed)
			}
		}
	}
	if st := a.b.status("target", 0); st.End != 0 {
		a.Errorf("something was published: the log ends at %d", st.End)
	}
}

func k15(a *attack) {
	a.closes("topics of Metadata", reasonMalformed, headed(wire.KeyMetadata, 1, giant...))
	a.closes("compact topics", reasonMalformed, headed(wire.KeyMetadata, 9, 0, 0xff, 0xff, 0xff, 0xff, 0x0f))
	a.closes("topics of CreateTopics", reasonMalformed, headed(wire.KeyCreateTopics, 4, giant...))
	a.closes("negative length", reasonMalformed, headed(wire.KeyCreateTopics, 4, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0))
	produce := append([]byte{0xff, 0xff, 0, 1, 0, 0, 0, 1}, giant...)
	a.closes("topics of Produce", reasonMalformed, headed(wire.KeyProduce, 3, produce...))
	records := append([]byte{0xff, 0xff, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 0}, giant...)
	a.closes("bytes of records", reasonMalformed, headed(wire.KeyProduce, 3, records...))
	a.closes("topics of Fetch", reasonMalformed, headed(wire.KeyFetch, 4, append(make([]byte, 17), giant...)...))
	a.closes("groups of OffsetFetch", reasonMalformed, headed(wire.KeyOffsetFetch, 8, 0, 0xff, 0xff, 0xff, 0xff, 0x0f))
	a.closes("tags", reasonMalformed, headed(wire.KeyMetadata, 9, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f))
	a.closes("size of a tag", reasonMalformed, headed(wire.KeyMetadata, 9, 0, 1, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f))
}

// k17: 10,000 topics that say they have 10,000 assignments each. The broker gives up when the structs would pass its budget, so the first
// hundred topics' bytes show the same as all of them.
func k17(a *attack) {
	body := []byte{0x91, 0x4e}                                                 // 10,000 topics, compact
	assignments := append([]byte{0x91, 0x4e}, make([]byte, 10_000*6)...)       // of no replicas: index, length 0, no tags
	topic := append([]byte{1, 0, 0, 0, 0, 0, 0}, append(assignments, 1, 0)...) // no name, no numbers, no configs
	for i := range 10_000 {
		topic[7+2+6*i+4] = 1 // an empty array
	}
	for range 100 {
		body = append(body, topic...)
	}
	a.closes("assignments", reasonBudget, headed(wire.KeyCreateTopics, 7, append([]byte{0}, body...)...))
	a.closes("a million topics without a name", reasonBudget,
		headed(wire.KeyMetadata, 12, append([]byte{0, 0xc1, 0x84, 0x3d}, make([]byte, 18_000_000)...)...))
	a.closes("a million tags", reasonBudget,
		headed(wire.KeyMetadata, 9, append([]byte{0, 1, 0, 0, 0, 0xc0, 0x84, 0x3d}, bytes.Repeat([]byte{1, 0}, 1_000_000)...)...))
}

func k18(a *attack) {
	overlong := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}
	a.closes("array length", reasonMalformed, headed(wire.KeyMetadata, 9, append([]byte{0}, overlong...)...))
	a.closes("five bytes of more than 32 bits", reasonMalformed, headed(wire.KeyMetadata, 9, 0, 0xff, 0xff, 0xff, 0xff, 0x7f))
	a.closes("string length", reasonMalformed, headed(wire.KeyApiVersions, 3, append([]byte{0}, overlong...)...))
	a.closes("tags of the header", reasonMalformed, headed(wire.KeyMetadata, 9, overlong...))
}
