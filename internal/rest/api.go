package rest

import (
	"bytes"
	"html/template"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// describe registers the routes of /v1 and their description. huma reads parameters and bodies of most of them; those of records, where every
// microsecond counts, are read by hand and only described here.
func (d *door) describe(mux *http.ServeMux) {
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			Info: &huma.Info{
				Title: "Strandline", Version: "v1",
				Description: "The control surface of a Strandline broker, and a convenience for services without a Kafka client. The fast way to its data is the Kafka protocol, straight to the leaders.",
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"basic": {Type: "http", Scheme: "basic"}, "bearer": {Type: "http", Scheme: "bearer"}, "certificate": {Type: "mutualTLS"},
				},
			},
			Security: []map[string][]string{{}, {"basic": {}}, {"bearer": {}}, {"certificate": {}}},
		},
		Formats:                      map[string]huma.Format{"application/json": strictJSON, "json": strictJSON},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers: []huma.Transformer{func(_ huma.Context, _ string, v any) (any, error) {
			if e, ok := v.(*huma.ErrorModel); ok {
				return problemOf(e), nil
			}
			return v, nil
		}},
	}
	api := humago.New(mux, config)
	d.describeRecords(mux, api)
	d.describeTopics(api)
	d.describeTopicChange(api)
	d.describeQuotas(api)
	d.describeTopicLife(api)
	d.describeGroups(api)
	d.describeGroupViews(api)
	d.describeGroupList(api)
	d.describeSeek(api)
	d.describeCluster(api)
	d.describeACLs(api)
	d.describeUsers(api)
	d.describeAudit(api)
	explainProblems(api.OpenAPI())
	spec, err := json.Marshal(api.OpenAPI(), jsontext.WithIndent(" "), json.Deterministic(true))
	if err != nil {
		panic("rest: the API description cannot be written: " + err.Error()) // a mistake in this program, met by every test
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(spec)
	})
	page := docsPage(api.OpenAPI())
	mux.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		_, _ = w.Write(page)
	})
}

// strictJSON refuses names that stand twice and bytes that are not UTF-8, and names the place of a fault (H6, H8).
var strictJSON = huma.Format{
	Marshal:   func(w io.Writer, v any) error { return json.MarshalWrite(w, v, json.Deterministic(true)) },
	Unmarshal: func(b []byte, v any) error { return json.Unmarshal(b, v) },
}

// explainProblems names the statuses of every operation's problems: huma describes its own form. What is not named is not answered; 500 is a mistake in
// the broker, and never named.
func explainProblems(o *huma.OpenAPI) {
	schema := o.Components.Schemas.Schema(reflect.TypeFor[problem](), true, "Problem")
	for _, op := range operations(o) {
		delete(op.Responses, "default")
		for status := range op.Responses {
			if status >= "400" {
				delete(op.Responses, status)
			}
		}
		for _, k := range problemKinds {
			if k.of == nil || k.of(op) {
				op.Responses[strconv.Itoa(k.status)] = &huma.Response{
					Description: k.means, Content: map[string]*huma.MediaType{"application/problem+json": {Schema: schema}},
				}
			}
		}
	}
	delete(o.Components.Schemas.Map(), "ErrorModel")
	delete(o.Components.Schemas.Map(), "ErrorDetail")
}

// problemKinds are the statuses of problems, and which operations can have them; nil: all.
var problemKinds = []struct {
	status int
	means  string
	of     func(*huma.Operation) bool
}{
	{http.StatusBadRequest, "the request is malformed", nil},
	{http.StatusUnauthorized, "who asks is not proved", nil},
	{http.StatusForbidden, "no rule allows it, or it comes from another site's page", nil},
	{http.StatusNotFound, "there is no such thing, or it is not for this caller to see", nil},
	{http.StatusRequestTimeout, "the body did not come in time", hasBody},
	{http.StatusConflict, "the state is not what the request takes it to be", func(op *huma.Operation) bool { return op.Method != http.MethodGet }},
	{http.StatusRequestEntityTooLarge, "the body, or a record, is too large", hasBody},
	{http.StatusUnsupportedMediaType, "the body is of another type or encoding", hasBody},
	{http.StatusRequestedRangeNotSatisfiable, "the offset is not retained; validRange says which are", func(op *huma.Operation) bool { return op.OperationID == "fetchRecords" }},
	{http.StatusMisdirectedRequest, "another node leads, or the address was reached by a strange name", nil},
	{http.StatusUnprocessableEntity, "a part of the request is refused; errors says which", nil},
	{http.StatusTooManyRequests, "throttled; Retry-After says for how long", nil},
	{http.StatusServiceUnavailable, "not available now; nothing was done unless outcome says unknown", nil},
	{http.StatusGatewayTimeout, "no answer in time; outcome says what is known", nil},
}

func hasBody(op *huma.Operation) bool { return op.RequestBody != nil }

// operations are all operations in the order of their paths.
func operations(o *huma.OpenAPI) (out []*huma.Operation) {
	for _, p := range o.Paths {
		for _, op := range []*huma.Operation{p.Get, p.Put, p.Post, p.Delete, p.Patch} {
			if op != nil {
				out = append(out, op)
			}
		}
	}
	slices.SortFunc(out, func(a, b *huma.Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return out
}

// publishBody describes the body of a publish of one record, publishBatch that of several.
type publishBody struct {
	RoutingKey    *string       `json:"routingKey,omitempty" doc:"records of one key go to one partition, in order"`
	RecordID      string        `json:"recordId,omitempty" minLength:"1" maxLength:"256" doc:"published again under the same id within the topic's dedup window, the record is stored once; at most 256 bytes of UTF-8"`
	Value         anyValue      `json:"value" required:"true"`
	Headers       []writeHeader `json:"headers,omitempty" maxItems:"100"`
	SchemaVersion string        `json:"schemaVersion,omitempty"`
}

type writeHeader struct {
	Name        string  `json:"name" minLength:"1"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"valueBase64,omitempty"`
}

type publishBatch struct {
	Records []publishBody `json:"records" minItems:"1" maxItems:"10000"`
}

// describeRecords registers and describes the routes of records.
func (d *door) describeRecords(mux *http.ServeMux, api huma.API) {
	o := api.OpenAPI()
	schema := func(t reflect.Type) *huma.Schema { return o.Components.Schemas.Schema(t, true, t.Name()) }
	content := func(s *huma.Schema) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: s}}
	}
	either := func(name string, of ...*huma.Schema) *huma.Schema { // by name, so that generated clients have a type for it
		o.Components.Schemas.Map()[name] = &huma.Schema{AnyOf: of}
		return &huma.Schema{Ref: "#/components/schemas/" + name}
	}
	one, many := schema(reflect.TypeFor[publishBody]()), schema(reflect.TypeFor[publishBatch]())
	least, most := 0.0, float64(1<<31-1)
	topic := &huma.Param{Name: "topic", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}
	partition := &huma.Param{Name: "partition", In: "path", Required: true, Schema: &huma.Schema{Type: "integer", Minimum: &least, Maximum: &most}}
	number := func(name, doc string, min float64) *huma.Param {
		return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: "integer", Format: "int64", Minimum: &min}}
	}
	timeout := number("timeoutMs", "how long to wait for the acknowledgement: 10000, at most "+strconv.Itoa(int(waitMax.Milliseconds())), 1)
	key := &huma.Param{Name: "Idempotency-Key", In: "header", Description: "the recordId of one record", Schema: &huma.Schema{Type: "string"}}
	bodyOf := func(s *huma.Schema) *huma.RequestBody {
		c := content(s)
		c["application/octet-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary", Description: "the value of one record; routingKey and schemaVersion are query parameters"}}
		return &huma.RequestBody{Required: true, Content: c}
	}
	for _, r := range []struct {
		op *huma.Operation
		do http.HandlerFunc
	}{
		{&huma.Operation{
			OperationID: "publishRecord", Method: http.MethodPost, Path: "/v1/topics/{topic}/partitions/{partition}/records", Tags: []string{"records"},
			Summary:    "Publish one record to a partition; only its leader takes it, others answer 421 with the leader",
			Parameters: []*huma.Param{topic, partition, timeout, key}, RequestBody: bodyOf(one),
			Responses: map[string]*huma.Response{"201": {Description: "stored as the topic asks", Content: content(schema(reflect.TypeFor[stored]()))}},
		}, d.publishOne},
		{&huma.Operation{
			OperationID: "publishRecords", Method: http.MethodPost, Path: "/v1/topics/{topic}/records", Tags: []string{"records"},
			Summary:    "Publish one record or several; the partition follows from the routing key, else from the record id, and its leader gets them",
			Parameters: []*huma.Param{topic, timeout, key}, RequestBody: bodyOf(either("Publication", one, many)),
			Responses: map[string]*huma.Response{
				"201": {Description: "all stored", Content: content(either("Published", schema(reflect.TypeFor[stored]()), schema(reflect.TypeFor[results]())))},
				"207": {Description: "some records of a batch have a problem instead of a place", Content: content(schema(reflect.TypeFor[results]()))},
			},
		}, d.publishAny},
		{&huma.Operation{
			OperationID: "fetchRecords", Method: http.MethodGet, Path: "/v1/topics/{topic}/partitions/{partition}/records", Tags: []string{"records"},
			Summary: "Read records; no position moves",
			Parameters: []*huma.Param{topic, partition, number("fromOffset", "the first record to read; without it the oldest", 0),
				number("maxRecords", "100; at most 10000", 1), number("waitMs", "how long to wait for a record: 0; longer waits than "+strconv.Itoa(int(waitMax.Milliseconds()))+" are shortened", 0)},
			Responses: map[string]*huma.Response{"200": {Description: "records, maybe none", Content: content(schema(reflect.TypeFor[readRecords]()))}},
		}, d.fetch},
	} {
		o.AddOperation(r.op)
		mux.HandleFunc(r.op.Method+" "+r.op.Path, r.do)
	}
}

// docsPage is the API for people, without anything from elsewhere.
func docsPage(o *huma.OpenAPI) []byte {
	var b bytes.Buffer
	if err := docs.Execute(&b, map[string]any{"API": o, "Operations": operations(o)}); err != nil {
		panic("rest: the page about the API cannot be written: " + err.Error()) // a mistake in this program, met by every test
	}
	return b.Bytes()
}

var docs = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.API.Info.Title}} API</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}h2{font:600 15px ui-monospace,monospace;margin-top:2em}
td,th{text-align:left;padding:.1em 1em .1em 0;vertical-align:top}code{font-family:ui-monospace,monospace}</style></head>
<body><h1>{{.API.Info.Title}} API</h1><p>{{.API.Info.Description}}</p><p>Machine-readable: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>
{{range .Operations}}<h2 id="{{.OperationID}}">{{.Method}} {{.Path}}</h2><p>{{.Summary}}</p>
{{if .Parameters}}<table>{{range .Parameters}}<tr><td><code>{{.Name}}</code></td><td>{{.In}}</td><td>{{with .Schema}}{{.Type}}{{end}}</td><td>{{.Description}}</td></tr>{{end}}</table>{{end}}
{{range $status, $r := .Responses}}<div><code>{{$status}}</code> {{$r.Description}}</div>{{end}}{{end}}
</body></html>
`))
