package rest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"strandline.dev/internal/record"
)

// The names of our headers on the log; the record id's is the topic's own (strandline.dedup.header).
const (
	schemaVersionHeader = "schema-version"
	contentTypeHeader   = "content-type"
)

// draft is a record as a publish gives it. Its bytes are views of the request or of the reader's own memory.
type draft struct {
	key           []byte // nil: none
	id            string
	value         []byte // nil: null
	hasValue      bool
	contentType   string
	schemaVersion string
	headers       []record.Header
}

// drafts reads the body of a publish: one record, or {"records": [...]} where that is allowed. It reads token by token, since a body of a megabyte is
// ordinary here; names that are given twice, bytes that are not UTF-8 and what follows the body are refused (H6, H8).
type drafts struct {
	dec  *jsontext.Decoder
	text []byte // unquoted strings
	list []draft
	many bool
}

func readDrafts(body []byte, manyAllowed bool) (*drafts, error) {
	if len(body) == 0 {
		return nil, refuse(http.StatusBadRequest, "BAD_REQUEST", "the request needs a body")
	}
	// Unquoted text is never longer than the body, so text does not move while views of it are kept.
	r := &drafts{dec: jsontext.NewDecoder(bytes.NewBuffer(body)), text: make([]byte, 0, len(body))}
	err := r.body(manyAllowed)
	if err == nil {
		if _, err = r.dec.ReadToken(); errors.Is(err, io.EOF) {
			return r, nil
		}
		if err == nil {
			err = refuse(http.StatusBadRequest, "MALFORMED_JSON", fmt.Sprintf("something follows the body at byte %d", r.dec.InputOffset()))
		}
	}
	return nil, malformed(err)
}

// malformed makes a syntax error of JSON a problem that names its place.
func malformed(err error) error {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return refuse(http.StatusBadRequest, "MALFORMED_JSON", "the body is not valid JSON: "+err.Error())
}

func (r *drafts) body(manyAllowed bool) error {
	var one draft
	single := false
	err := r.object("body", func(name string) error {
		if name == "records" && manyAllowed && !single {
			r.many = true
			return r.array("records", publishedMax, func(i int) error {
				var d draft
				if err := r.record(&d, "records["+strconv.Itoa(i)+"]"); err != nil {
					return err
				}
				r.list = append(r.list, d)
				return nil
			})
		}
		if r.many {
			return invalid(name, "is not a field of a batch")
		}
		single = true
		return r.field(&one, "", name)
	})
	switch {
	case err != nil:
		return err
	case r.many && len(r.list) == 0:
		return invalid("records", "is empty")
	case r.many:
		return nil
	case !one.hasValue:
		return invalid("value", `is missing: {"json": ...}, {"text": "..."}, {"base64": "..."} or null`)
	}
	r.list = append(r.list, one)
	return nil
}

// object reads an object; each is called behind every name.
func (r *drafts) object(at string, each func(name string) error) error {
	if err := r.open(at, '{', "an object"); err != nil {
		return err
	}
	for r.dec.PeekKind() != '}' {
		t, err := r.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := each(t.String()); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

func (r *drafts) array(at string, most int, each func(i int) error) error {
	if err := r.open(at, '[', "an array"); err != nil {
		return err
	}
	for i := 0; r.dec.PeekKind() != ']'; i++ {
		if i == most {
			return invalid(at, fmt.Sprintf("has more than %d elements", most))
		}
		if err := each(i); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

func (r *drafts) open(at string, kind jsontext.Kind, want string) error {
	switch k := r.dec.PeekKind(); {
	case k == 0: // the next read has the error
	case k != kind:
		return invalid(at, "is not "+want)
	}
	_, err := r.dec.ReadToken()
	return err
}

func (r *drafts) record(d *draft, at string) error {
	if err := r.object(at, func(name string) error { return r.field(d, at+".", name) }); err != nil {
		return err
	}
	if !d.hasValue {
		return invalid(at+".value", "is missing")
	}
	return nil
}

// field reads one field of a record.
func (r *drafts) field(d *draft, at, name string) error {
	at += name
	switch name {
	case "routingKey":
		b, null, err := r.string(at)
		if d.key = b; err == nil && null {
			d.key = nil
		}
		return err
	case "recordId":
		b, null, err := r.string(at)
		switch {
		case err == nil && null: // of a publisher who lost the id, and would not learn that nothing keeps a retry from being stored twice
			return invalid(at, "is null; a record without an id leaves it out")
		case err == nil && len(b) == 0:
			return invalid(at, "is empty; a record without an id leaves it out")
		case len(b) > recordIDMax:
			return invalid(at, fmt.Sprintf("is longer than %d bytes", recordIDMax))
		}
		d.id = string(b)
		return err
	case "schemaVersion":
		b, null, err := r.string(at)
		if err == nil && null {
			return invalid(at, "is null; a record without one leaves it out")
		}
		d.schemaVersion = string(b)
		return err
	case "headers":
		return r.array(at, recordHeadersMax, func(i int) error { return r.header(d, at+"["+strconv.Itoa(i)+"]") })
	case "value":
		d.hasValue = true
		return r.value(d, at)
	}
	return invalid(at, "unknown field")
}

// string reads a string or null. The bytes are not nil for a string, and good as long as r.
func (r *drafts) string(at string) (b []byte, null bool, err error) {
	switch r.dec.PeekKind() {
	case '"', 'n', 0:
	default:
		return nil, false, invalid(at, "is not a string")
	}
	raw, err := r.dec.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return nil, true, err
	}
	start := len(r.text)
	if r.text, err = jsontext.AppendUnquote(r.text, raw); err != nil {
		return nil, false, err
	}
	return r.text[start:len(r.text):len(r.text)], false, nil
}

func (r *drafts) header(d *draft, at string) error {
	var h record.Header
	named := false
	err := r.object(at, func(name string) error {
		b, null, err := r.string(at + "." + name)
		switch {
		case err != nil:
			return err
		case name == "name":
			h.Key, named = string(b), len(b) > 0
		case name == "value" && !null:
			h.Value = b
		case name == "valueBase64" && !null:
			h.Value, err = unbase64(at+".valueBase64", b)
		case name != "value" && name != "valueBase64":
			return invalid(at+"."+name, "unknown field")
		}
		return err
	})
	if err == nil && !named {
		err = invalid(at+".name", "is missing")
	}
	d.headers = append(d.headers, h)
	return err
}

// value reads {"json": ...}, {"text": "..."}, {"base64": "..."} or null.
func (r *drafts) value(d *draft, at string) error {
	if r.dec.PeekKind() == 'n' {
		_, err := r.dec.ReadToken()
		return err
	}
	forms := 0
	err := r.object(at, func(name string) (err error) {
		forms++
		var null bool
		switch name {
		case "json":
			var raw jsontext.Value
			raw, err = r.dec.ReadValue()
			start := len(r.text)
			r.text = append(r.text, raw...)
			d.value, d.contentType = r.text[start:len(r.text):len(r.text)], "application/json"
			return err
		case "text":
			d.value, null, err = r.string(at + ".text")
			d.contentType = "text/plain; charset=utf-8"
		case "base64":
			if d.value, null, err = r.string(at + ".base64"); err == nil && !null {
				d.value, err = unbase64(at+".base64", d.value)
			}
		default:
			return invalid(at+"."+name, "unknown form: json, text or base64")
		}
		if err == nil && null {
			err = invalid(at+"."+name, "is null; a record without a value has value null")
		}
		return err
	})
	if err == nil && forms != 1 {
		err = invalid(at, "wants exactly one of json, text and base64")
	}
	return err
}

// unbase64 decodes in place.
func unbase64(at string, b []byte) ([]byte, error) {
	n, err := base64.StdEncoding.Strict().Decode(b, b)
	if err != nil {
		return nil, invalid(at, "is not base64")
	}
	return b[:n], nil
}

// rawDraft is a publish whose body is the value itself.
func rawDraft(body []byte, params map[string]string) draft {
	d := draft{value: body, hasValue: true, contentType: "application/octet-stream", schemaVersion: params["schemaVersion"]}
	if d.value == nil {
		d.value = []byte{}
	}
	if key, ok := params["routingKey"]; ok {
		d.key = []byte(key)
	}
	return d
}

// check judges what no single field shows: ids that stand twice in one request, and headers that have a field of their own.
func check(list []draft, many bool, idHeader string) error {
	seen := make(map[string]int, len(list))
	for i := range list {
		d, at := &list[i], ""
		if many {
			at = "records[" + strconv.Itoa(i) + "]."
		}
		if d.id != "" {
			if first, twice := seen[d.id]; twice {
				return invalid(at+"recordId", "is also that of records["+strconv.Itoa(first)+"]")
			}
			seen[d.id] = i
		}
		for _, h := range d.headers {
			switch h.Key {
			case idHeader, schemaVersionHeader:
				return invalid(at+"headers", "the header "+strconv.Quote(h.Key)+" has a field of its own")
			case contentTypeHeader:
				d.contentType = "" // the client's own
			}
		}
	}
	return nil
}

// allHeaders are the headers on the log: those that have fields of their own, then the client's.
func (d *draft) allHeaders(idHeader string) []record.Header {
	out := make([]record.Header, 0, len(d.headers)+3)
	if d.id != "" {
		out = append(out, record.Header{Key: idHeader, Value: []byte(d.id)})
	}
	if d.schemaVersion != "" {
		out = append(out, record.Header{Key: schemaVersionHeader, Value: []byte(d.schemaVersion)})
	}
	if d.contentType != "" && d.value != nil {
		out = append(out, record.Header{Key: contentTypeHeader, Value: []byte(d.contentType)})
	}
	return append(out, d.headers...)
}

// partitionOf is the partition of a draft among count: by its key as every Kafka client chooses it, else by its id, so that a repeat comes to the same
// one; without either any will do.
func (d *draft) partitionOf(count int32, any uint32) int32 {
	switch {
	case d.key != nil:
		return int32(murmur2(d.key)&0x7fffffff) % count
	case d.id != "":
		return int32(murmur2([]byte(d.id))&0x7fffffff) % count
	}
	return int32(any % uint32(count))
}

// murmur2 is the hash by which Java's producer, and all others after it, choose a partition.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= m
		h = h*m ^ (k^k>>24)*m
	}
	for i := len(b) - 1; i >= 0; i-- {
		h ^= uint32(b[i]) << (8 * i)
		if i == 0 {
			h *= m
		}
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// noPartition is the partition of a topic that is not known here: the server says what is wrong with it.
const noPartition = int32(0)
