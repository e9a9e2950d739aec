package main

import (
	"errors"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// formatDefault is one value a line, in both directions.
const formatDefault = `%v\n`

// formatHelp is the grammar, as far as one screen holds it; produce and consume share it, so that what one prints the other reads.
const formatHelp = `Formats (-f), the same for produce and consume:
  %t topic   %k key   %v value   %p partition   %o offset   %e leader epoch   %d timestamp (ms)   %x %y producer id, epoch
  %T %K %V length of topic, key, value   %H number of headers   %h{%k=%v } the headers, each by the format in the braces
  %[ %| %] log start, last stable offset, high watermark (consume)   %i running number (consume)   %% %{ %} the characters
  text as %v{hex} %v{base64}; numbers as %V{ascii} %V{hex} %V{big32} %V{little16} ...; time as %d{go#RFC3339#} %d{strftime[%F]}
  \n newline   \t tab   \r return   \\ backslash   \xNN byte
A format cannot tell null from empty, nor a value with a newline from two lines: --json can.`

// newFormatter parses a -f format for printing.
func newFormatter(layout string) (*kgo.RecordFormatter, error) {
	f, err := kgo.NewRecordFormatter(layout)
	if err != nil {
		return nil, usagef("format %q: %w", layout, err)
	}
	return f, nil
}

// formatReader reads records from r as a -f format lays them out.
type formatReader struct {
	inner *kgo.RecordReader
	verbs map[byte]bool
}

func newFormatReader(r io.Reader, layout string) (*formatReader, error) {
	verbs := layoutVerbs(layout)
	if strings.HasSuffix(layout, `\n`) && !verbs['T'] && !verbs['K'] && !verbs['V'] && !verbs['H'] {
		r = &lineEnder{r: r, last: '\n'}
	}
	inner, err := kgo.NewRecordReader(r, readLayout(layout))
	if err != nil {
		return nil, usagef("format %q: %w", layout, err)
	}
	return &formatReader{inner: inner, verbs: verbs}, nil
}

// lineEnder ends the last line of an input that forgot to, as `printf x | strandline produce t` does.
type lineEnder struct {
	r    io.Reader
	last byte
}

func (l *lineEnder) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if n > 0 {
		l.last = b[n-1]
		if err == io.EOF {
			err = nil // the next read ends the line, and then the input
		}
	}
	if n == 0 && err == io.EOF && l.last != '\n' && len(b) > 0 {
		b[0], l.last = '\n', '\n'
		return 1, nil
	}
	return n, err
}

// next returns the next record, io.EOF at the end of the input. A key or value that the format mentions is never null, and one that
// it does not mention always is. The topic is left to the caller.
func (f *formatReader) next() (*kgo.Record, error) {
	r := &kgo.Record{Partition: partitionByKey}
	if err := f.inner.ReadRecordInto(r); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("the input ends in the middle of a record")
		}
		return nil, err
	}
	r.Key, r.Value = f.present('k', r.Key), f.present('v', r.Value)
	for i := range r.Headers {
		if r.Headers[i].Value == nil {
			r.Headers[i].Value = []byte{}
		}
	}
	r.Topic = ""
	return r, nil
}

func (f *formatReader) present(verb byte, b []byte) []byte {
	switch {
	case !f.verbs[verb]:
		return nil
	case b == nil:
		return []byte{}
	}
	return b
}

// readLayout makes a format mean the same when reading as when printing: printing %V gives the length of the value itself also where
// %v{hex} or %v{base64} follows, while the library's reader takes %V as the length of the text unless told otherwise.
func readLayout(layout string) string {
	if strings.Contains(layout, "json}") {
		return layout // a JSON text has only one length
	}
	var b strings.Builder
	for i := 0; i < len(layout); {
		if c := layout[i]; (c != '%' && c != '\\') || i+1 == len(layout) {
			b.WriteByte(c)
			i++
			continue
		}
		pair := layout[i : i+2]
		b.WriteString(pair)
		i += 2
		if pair != "%T" && pair != "%K" && pair != "%V" {
			continue
		}
		if i == len(layout) || layout[i] != '{' {
			b.WriteString("{decoded}")
			continue
		}
		if end := strings.IndexByte(layout[i:], '}'); end > 0 {
			spec := layout[i+1 : i+end]
			b.WriteString("{" + decodedSize(spec) + "}")
			i += end + 1
		}
	}
	return b.String()
}

// decodedSize adds ;decoded to a size format, unless the format settles the matter itself.
func decodedSize(spec string) string {
	fixed := spec == "" || strings.Trim(spec, "0123456789") == ""
	if fixed || strings.HasSuffix(spec, "decoded") || strings.HasSuffix(spec, "encoded") {
		return spec
	}
	return spec + ";decoded"
}

// layoutVerbs says which verbs a format uses outside its header specification.
func layoutVerbs(layout string) map[byte]bool {
	verbs := make(map[byte]bool)
	depth := 0
	for i := 0; i < len(layout); i++ {
		switch c := layout[i]; {
		case c == '\\':
			i++
		case c == '%' && i+1 < len(layout):
			i++
			if depth == 0 {
				verbs[layout[i]] = true
			}
		case c == '{':
			depth++
		case c == '}':
			depth = max(0, depth-1)
		}
	}
	return verbs
}
