package rest

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"mime"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"strandline.dev/internal/record"
)

// readRecord describes a record as appendRecord writes it; it is here for the API description.
type readRecord struct {
	Offset        int64        `json:"offset"`
	Key           *string      `json:"key" doc:"null: none, or not text"`
	KeyBase64     string       `json:"keyBase64,omitempty" doc:"instead of key where it is not UTF-8"`
	RecordID      string       `json:"recordId,omitempty"`
	Timestamp     time.Time    `json:"timestamp"`
	Headers       []readHeader `json:"headers"`
	SchemaVersion string       `json:"schemaVersion,omitempty"`
	Value         anyValue     `json:"value"`
	Size          int          `json:"size" doc:"bytes of key, value and headers"`
	Checksum      string       `json:"checksum" doc:"CRC-32C of the value's bytes, as crc32c:HEX"`
}

type readHeader struct {
	Name        string  `json:"name"`
	Value       *string `json:"value" doc:"null: none, or not text"`
	ValueBase64 string  `json:"valueBase64,omitempty"`
}

// anyValue is a value in one of three forms, or null.
type anyValue struct{}

// Schema implements huma.SchemaProvider.
func (anyValue) Schema(huma.Registry) *huma.Schema {
	one := func(name, kind, format, doc string) *huma.Schema {
		return &huma.Schema{
			Type: huma.TypeObject, Required: []string{name}, AdditionalProperties: false,
			Properties: map[string]*huma.Schema{name: {Type: kind, Format: format, Description: doc}},
		}
	}
	return &huma.Schema{OneOf: []*huma.Schema{
		one("json", "", "", "the value is this JSON, byte for byte"),
		one("text", huma.TypeString, "", "the value is this text in UTF-8"),
		one("base64", huma.TypeString, "", "the value is these bytes"),
		{Type: "null"},
	}}
}

type readRecords struct {
	Records       []readRecord `json:"records"`
	NextOffset    int64        `json:"nextOffset" doc:"where to go on reading; what to commit when these are processed"`
	LogStart      int64        `json:"logStart"`
	HighWatermark int64        `json:"highWatermark"`
}

// appendRecord appends one record. null, empty and absent stay apart (O11).
func appendRecord(out []byte, offset, timestampMs int64, r *record.Record, idHeader string) []byte {
	out = append(out, `{"offset":`...)
	out = strconv.AppendInt(out, offset, 10)
	out = appendBytes(append(out, ',', '"'), "key", r.Key)
	size := len(r.Key) + len(r.Value)
	var kind []byte
	var version []byte
	for i := range r.Headers {
		h := &r.Headers[i]
		size += len(h.Key) + len(h.Value)
		switch h.Key {
		case idHeader:
			out = quoted(append(out, `,"recordId":`...), h.Value)
		case schemaVersionHeader:
			version = h.Value
		case contentTypeHeader:
			kind = h.Value
		}
	}
	out = append(out, `,"timestamp":"`...)
	out = time.UnixMilli(timestampMs).UTC().AppendFormat(out, "2006-01-02T15:04:05.000Z")
	out = append(out, `","headers":[`...)
	for i := range r.Headers {
		if i > 0 {
			out = append(out, ',')
		}
		out = quoted(append(out, `{"name":`...), []byte(r.Headers[i].Key))
		out = appendBytes(append(out, ',', '"'), "value", r.Headers[i].Value)
		out = append(out, '}')
	}
	out = append(out, ']')
	if version != nil {
		out = quoted(append(out, `,"schemaVersion":`...), version)
	}
	out = appendValue(append(out, `,"value":`...), r.Value, kind)
	out = append(out, `,"size":`...)
	out = strconv.AppendInt(out, int64(size), 10)
	return fmt.Appendf(out, `,"checksum":"crc32c:%08x"}`, crc32.Checksum(r.Value, castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendBytes appends a field of bytes: text as it is, null for none, and what is not text in base64 in a field of its own.
func appendBytes(out []byte, name string, b []byte) []byte {
	out = append(append(out, name...), '"', ':')
	switch {
	case b == nil:
		return append(out, "null"...)
	case utf8.Valid(b):
		return quoted(out, b)
	}
	out = append(append(append(out, `null,"`...), name...), `Base64":"`...)
	return append(base64.StdEncoding.AppendEncode(out, b), '"')
}

// quoted appends bytes as a JSON string; what is not UTF-8 is replaced.
func quoted(out, b []byte) []byte {
	q, _ := jsontext.AppendQuote(out, b) // the error says that something was replaced
	return q
}

// appendValue appends a value in the form that its content type and its bytes allow.
func appendValue(out, value, contentType []byte) []byte {
	if value == nil {
		return append(out, "null"...)
	}
	kind, _, err := mime.ParseMediaType(string(contentType))
	switch {
	case err == nil && kind == "application/json" && jsontext.Value(value).IsValid():
		out = append(append(out, `{"json":`...), value...)
	case err == nil && kind == "application/octet-stream" || !utf8.Valid(value):
		out = base64.StdEncoding.AppendEncode(append(out, `{"base64":"`...), value)
		out = append(out, '"')
	default:
		out = quoted(append(out, `{"text":`...), value)
	}
	return append(out, '}')
}
