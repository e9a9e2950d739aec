package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A record as one line of JSON:
//
//	{"topic":"orders","partition":3,"offset":81,"timestamp":1767225600000,"timestampType":"create","leaderEpoch":1,
//	 "key":"order-42","value":"...","headers":[{"name":"a","value":"1"},{"name":"a","value":null}]}
//
// Bytes that are UTF-8 are a JSON string, other bytes {"base64":"..."}, and null is null: so the three never mix, and reading a line
// gives exactly the bytes that were printed (O12). When reading, {"text":"..."} is the same as the string, and {"json":...} is the
// JSON text itself, compacted.

// timestampMsMax is the largest distance from 1970, in milliseconds, that the client library can send (it counts nanoseconds).
const timestampMsMax = math.MaxInt64 / int64(time.Millisecond)

// appendRecordJSON appends one record, without a newline.
func appendRecordJSON(dst []byte, r *kgo.Record) []byte {
	dst = append(dst, `{"topic":`...)
	dst = appendTextJSON(dst, []byte(r.Topic))
	dst = appendNumberJSON(dst, "partition", int64(r.Partition))
	dst = appendNumberJSON(dst, "offset", r.Offset)
	dst = appendNumberJSON(dst, "timestamp", r.Timestamp.UnixMilli())
	if r.Attrs.TimestampType() == 1 {
		dst = append(dst, `,"timestampType":"append"`...)
	} else {
		dst = append(dst, `,"timestampType":"create"`...)
	}
	dst = appendNumberJSON(dst, "leaderEpoch", int64(r.LeaderEpoch))
	dst = append(dst, `,"key":`...)
	dst = appendBytesJSON(dst, r.Key)
	dst = append(dst, `,"value":`...)
	dst = appendBytesJSON(dst, r.Value)
	dst = append(dst, `,"headers":[`...)
	for i, h := range r.Headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = appendBytesJSON(dst, append([]byte{}, h.Key...)) // a name is never null
		dst = append(dst, `,"value":`...)
		dst = appendBytesJSON(dst, h.Value)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

func appendNumberJSON(dst []byte, name string, n int64) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return strconv.AppendInt(dst, n, 10)
}

// appendBytesJSON appends null, a string, or {"base64":...}.
func appendBytesJSON(dst, b []byte) []byte {
	switch {
	case b == nil:
		return append(dst, "null"...)
	case utf8.Valid(b):
		return appendTextJSON(dst, b)
	}
	dst = append(dst, `{"base64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, `"}`...)
}

// appendTextJSON appends valid UTF-8 as a JSON string, with nothing escaped that need not be.
func appendTextJSON(dst, text []byte) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// recordLine is what a line of JSON may hold. Topic, offset, leader epoch and timestamp type are what consume prints beside the
// record; produce takes them and leaves them, because the broker decides them anew.
type recordLine struct {
	Topic         *string         `json:"topic"`
	Partition     *int32          `json:"partition"`
	Offset        *int64          `json:"offset"`
	Timestamp     *int64          `json:"timestamp"`
	TimestampType *string         `json:"timestampType"`
	LeaderEpoch   *int32          `json:"leaderEpoch"`
	Key           json.RawMessage `json:"key"`
	Value         json.RawMessage `json:"value"`
	Headers       []headerLine    `json:"headers"`
}

type headerLine struct {
	Name  json.RawMessage `json:"name"`
	Value json.RawMessage `json:"value"`
}

// parseRecordJSON reads one line of JSON. A field left out is null (key), none (headers), by key (partition) or now (timestamp); only
// the value must be there, because its absence is more often a slip than a tombstone.
func parseRecordJSON(line []byte) (*kgo.Record, error) {
	if err := checkText(line); err != nil {
		return nil, err
	}
	var l recordLine
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("not a record: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value on the line")
	}
	r := &kgo.Record{Partition: partitionByKey}
	if l.Partition != nil {
		if *l.Partition < partitionByKey {
			return nil, fmt.Errorf("partition %d: want 0 or more, or -1 for by key", *l.Partition)
		}
		r.Partition = *l.Partition
	}
	if l.Timestamp != nil {
		if *l.Timestamp > timestampMsMax || *l.Timestamp < -timestampMsMax {
			return nil, fmt.Errorf("timestamp %d: not a time in milliseconds between the years 1677 and 2262", *l.Timestamp)
		}
		r.Timestamp = time.UnixMilli(*l.Timestamp)
	}
	var err error
	if r.Key, err = parseBytesJSON(l.Key); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if l.Value == nil {
		return nil, errors.New(`the record has no "value"; write null for a tombstone`)
	}
	if r.Value, err = parseBytesJSON(l.Value); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	r.Headers, err = parseHeadersJSON(l.Headers)
	return r, err
}

func parseHeadersJSON(lines []headerLine) ([]kgo.RecordHeader, error) {
	if len(lines) > headersMax {
		return nil, fmt.Errorf("%d headers, the most is %d", len(lines), headersMax)
	}
	var headers []kgo.RecordHeader
	for i, h := range lines {
		name, err := parseBytesJSON(h.Name)
		if err == nil && name == nil {
			err = errNoName
		}
		if err != nil {
			return nil, fmt.Errorf("header %d: name: %w", i, err)
		}
		value, err := parseBytesJSON(h.Value)
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", name, err)
		}
		headers = append(headers, kgo.RecordHeader{Key: string(name), Value: value})
	}
	return headers, nil
}

// parseBytesJSON reads what appendBytesJSON writes, and the two longer forms. nil stands for null and for a field left out.
func parseBytesJSON(raw json.RawMessage) ([]byte, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return []byte(s), nil
	case raw[0] != '{':
		return nil, fmt.Errorf(`%.40s: want a string, null, or an object with one of "text", "json", "base64"`, raw)
	}
	var form struct {
		Text   *string         `json:"text"`
		JSON   json.RawMessage `json:"json"`
		Base64 *string         `json:"base64"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&form); err != nil {
		return nil, err
	}
	var forms [][]byte
	if form.Text != nil {
		forms = append(forms, []byte(*form.Text))
	}
	if form.JSON != nil {
		var b bytes.Buffer
		if err := json.Compact(&b, form.JSON); err != nil {
			return nil, err
		}
		forms = append(forms, b.Bytes())
	}
	if form.Base64 != nil {
		b, err := base64.StdEncoding.DecodeString(*form.Base64)
		if err != nil {
			return nil, err
		}
		forms = append(forms, b)
	}
	if len(forms) != 1 {
		return nil, errors.New(`want exactly one of "text", "json", "base64"`)
	}
	return forms[0], nil
}

// checkText refuses what a JSON parser would silently replace by U+FFFD: bytes that are not UTF-8, and half of a surrogate pair.
func checkText(line []byte) error {
	if !utf8.Valid(line) {
		return errors.New("the line is not UTF-8; give other bytes as {\"base64\":\"...\"}")
	}
	half := false // the previous escape was the first half of a pair
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' || i+1 == len(line) {
			if half {
				return errHalfSurrogate
			}
			continue
		}
		i++
		var unit uint64
		if line[i] == 'u' && i+4 < len(line) {
			unit, _ = strconv.ParseUint(string(line[i+1:i+5]), 16, 16)
			i += 4
		}
		second := unit >= 0xDC00 && unit < 0xE000
		if half != second {
			return errHalfSurrogate
		}
		half = unit >= 0xD800 && unit < 0xDC00
	}
	return nil
}
