package node

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"strandline.dev/internal/kafka"
)

// family is one metric of a page: what is said of it, and its series.
type family struct {
	name, kind, help string
	labels           []string // of all its series, in the order of the page, without le and quantile
	series           []series
}

// series is one line of a page.
type series struct {
	id    string // name and labels as they stand there
	value float64
}

var (
	seriesLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	seriesTag  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"`)
	partsOf    = regexp.MustCompile(`_(?:bucket|sum|count)$`)
)

// scrape reads a page of metrics of a running node.
func (c *cluster) scrape(id kafka.NodeID, path string) map[string]*family {
	c.t.Helper()
	status, body := httpGet(c.t, c.net.Host("client"), c.member(id).host()+":8080", path)
	if status != 200 {
		c.t.Fatalf("node %v: %s answers %d", id, path, status)
	}
	return parsePage(c.t, body)
}

func parsePage(t *testing.T, body string) map[string]*family {
	t.Helper()
	page := map[string]*family{}
	of := func(name string) *family {
		if page[name] == nil {
			page[name] = &family{name: name}
		}
		return page[name]
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			of(words[2]).help = words[3]
			continue
		case strings.HasPrefix(line, "# TYPE "):
			of(words[2]).kind = words[3]
			continue
		}
		m := seriesLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no line of a page of metrics: %q", line)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		name := m[1]
		if short := partsOf.ReplaceAllString(name, ""); page[name] == nil && page[short] != nil {
			name = short
		}
		f := of(name)
		f.series = append(f.series, series{strings.TrimSuffix(line, " "+m[3]), value})
		f.labels = nil
		for _, tag := range seriesTag.FindAllStringSubmatch(m[2], -1) {
			if tag[1] != "le" && tag[1] != "quantile" {
				f.labels = append(f.labels, tag[1])
			}
		}
	}
	return page
}
