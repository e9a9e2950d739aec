package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// partitionByKey as a record's partition leaves the choice to the key (murmur2, as every Kafka client does it).
const partitionByKey = -1

// recordIDHeader is the header that carries a record id; any client can read it.
const recordIDHeader = "record-id"

// produceFlags are the flags of `produce`.
type produceFlags struct {
	key               string
	keyGiven          bool
	headers           []string
	format            string
	json              bool
	partition         int32
	partitionGiven    bool
	acks, compression string
	recordID          string
	tombstone         bool
	create            bool
}

const produceLong = `Produce the records read from standard input: one value a line, records laid out by -f, or one JSON object a line with --json.
The answer for each record, with its partition and offset, is printed in the order of the input. The first record that cannot be
stored ends the command with exit code 1.

--json reads what ` + "`consume --json`" + ` prints: key, value, headers, timestamp and partition are kept byte for byte, null is not empty.
Give --partition -1 to spread the records by key instead of keeping their partitions.

A command whose answer was lost may be given again with the same --record-id: within the topic's strandline.dedup.window.ms the record is
stored once, and the answer is its first offset. Ids count for one partition, so give the same key or partition too.

` + formatHelp

func newProduceCommand(a *app) *cobra.Command {
	var f produceFlags
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Produce records from standard input",
		Long:  produceLong,
		Example: `  echo '{"order":42,"status":"paid"}' | strandline produce orders -k order-42 -H source=shop
  printf 'k1 v1\nk2 v2\n' | strandline produce orders -f '%k %v\n' -o json
  strandline consume orders -o start -e --json | strandline produce orders-copy --json
  echo paid | strandline produce orders -k order-42 --record-id 7f9c-42`,
		Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.keyGiven = cmd.Flags().Changed("key")
			f.partitionGiven = cmd.Flags().Changed("partition")
			return a.produce(cmd, args[0], f)
		},
		ValidArgsFunction: a.completeTopics,
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.key, "key", "k", "", "`KEY` of every record (without it: null)")
	fl.StringArrayVarP(&f.headers, "header", "H", nil, "header `name=value` of every record, after those in the input; name alone is a null value (repeatable)")
	fl.StringVarP(&f.format, "format", "f", formatDefault, "`FORMAT` of the records in the input")
	fl.BoolVar(&f.json, "json", false, "read one JSON object a line, as consume --json prints them")
	fl.Int32VarP(&f.partition, "partition", "p", partitionByKey, "partition `N` of every record (-1: by key)")
	fl.StringVar(&f.acks, "acks", "all", "`all|1|0`: when a record counts as stored")
	fl.StringVar(&f.compression, "compression", "none", "`none|gzip|snappy|lz4|zstd`: how batches are sent and stored")
	fl.StringVar(&f.recordID, "record-id", "", "`ID` of the one record in the input, sent as header "+recordIDHeader+": given again within the topic's strandline.dedup.window.ms it is not stored again")
	fl.BoolVarP(&f.tombstone, "tombstone", "Z", false, "send empty values as null")
	fl.BoolVar(&f.create, "allow-auto-topic-creation", false, "let the broker create the topic if it may")
	return cmd
}

func (a *app) produce(cmd *cobra.Command, topic string, f produceFlags) error {
	if f.partition < partitionByKey {
		return usagef("-p (--partition) %d: want a partition from 0, or -1 to go by key", f.partition)
	}
	source, err := a.produceSource(f)
	if err != nil {
		return err
	}
	opts, err := produceOptions(topic, f)
	if err != nil {
		return err
	}
	set, err := a.settings()
	if err != nil {
		return err
	}
	limits := &topicLimits{}
	s, err := openSession(set, append(opts, limits.option(), persistence(set.timeout), kgo.RetryBackoffFn(steadyPause))...)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.checkTopic(cmd.Context(), topic, f); err != nil {
		return err
	}
	limits.read(cmd.Context(), s, topic)
	return newProduction(a, s, topic, limits).run(cmd.Context(), source)
}

// recordSource returns the next record of the input, io.EOF at its end.
type recordSource func() (*kgo.Record, error)

// produceSource builds the reader of the input from the flags.
func (a *app) produceSource(f produceFlags) (recordSource, error) {
	headers, err := parseHeaders(f.headers)
	if err != nil {
		return nil, err
	}
	inner, err := a.inputSource(f)
	if err != nil {
		return nil, err
	}
	if f.recordID != "" {
		headers = append(headers, kgo.RecordHeader{Key: recordIDHeader, Value: []byte(f.recordID)})
	}
	var n int
	return func() (*kgo.Record, error) {
		r, err := inner()
		if err != nil {
			return nil, err
		}
		if n++; n > 1 && f.recordID != "" {
			return nil, errors.New("--record-id names one record, and the input holds more")
		}
		if f.keyGiven {
			r.Key = []byte(f.key)
		}
		if f.tombstone && len(r.Value) == 0 {
			r.Value = nil
		}
		if f.partitionGiven {
			r.Partition = f.partition
		}
		r.Headers = append(r.Headers, headers...)
		return r, nil
	}, nil
}

// inputSource reads the records as they stand in the input.
func (a *app) inputSource(f produceFlags) (recordSource, error) {
	verbs := layoutVerbs(f.format)
	switch {
	case f.json && f.format != formatDefault:
		return nil, usagef("--json and -f exclude each other")
	case f.keyGiven && (f.json || verbs['k']):
		return nil, usagef("-k gives every record one key, but the input holds keys already")
	case !f.json:
		reader, err := newFormatReader(a.stdin, f.format)
		if err != nil {
			return nil, err
		}
		return func() (*kgo.Record, error) {
			r, err := reader.next()
			if err == nil && !verbs['p'] {
				r.Partition = partitionByKey
			}
			return r, err
		}, nil
	}
	lines := bufio.NewScanner(a.stdin)
	lines.Buffer(make([]byte, 0, 64<<10), lineBytesMax)
	return func() (*kgo.Record, error) {
		for lines.Scan() {
			if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
				return parseRecordJSON(line)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}, nil
}

// parseHeaders reads -H flags: name=value, name= (empty), name (null).
func parseHeaders(flags []string) ([]kgo.RecordHeader, error) {
	if len(flags) > headersMax {
		return nil, usagef("%d headers, the most is %d", len(flags), headersMax)
	}
	var headers []kgo.RecordHeader
	for _, h := range flags {
		name, value, ok := strings.Cut(h, "=")
		if name == "" {
			return nil, usagef("header %q: want name=value", h)
		}
		header := kgo.RecordHeader{Key: name}
		if ok {
			header.Value = []byte(value)
		}
		headers = append(headers, header)
	}
	return headers, nil
}

// produceOptions turns the flags into options of the client.
func produceOptions(topic string, f produceFlags) ([]kgo.Opt, error) {
	acks, err := parseAcks(f.acks)
	if err != nil {
		return nil, err
	}
	codec, err := parseCompression(f.compression)
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(explicitPartitioner{kgo.StickyKeyPartitioner(nil)}),
		kgo.ProducerLinger(0),
		// A person waits for the answer: an unknown outcome after the time-out is better than no answer. It is reported as such.
		kgo.AllowIdempotentProduceCancellation(),
	}
	if f.create {
		opts = append(opts, kgo.AllowAutoTopicCreation())
	}
	return append(opts, acks...), nil
}

// parseAcks reads --acks; anything but all also gives up idempotence, which the protocol allows only with all.
func parseAcks(v string) ([]kgo.Opt, error) {
	switch v {
	case "all", "-1":
		return []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks())}, nil
	case "1":
		return []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}, nil
	case "0":
		return []kgo.Opt{kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()}, nil
	}
	return nil, usagef("acks %q: want all, 1 or 0", v)
}

func parseCompression(v string) (kgo.CompressionCodec, error) {
	switch v {
	case "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.NoCompression(), usagef("compression %q: want none, gzip, snappy, lz4 or zstd", v)
}

// checkTopic makes sure that the topic exists, so that a slip in its name is answered at once and not after a row of retries.
func (s *session) checkTopic(ctx context.Context, topic string, f produceFlags) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	count, err := s.partitionCount(ctx, topic)
	switch {
	case err == nil && f.partitionGiven && f.partition >= count:
		return &failure{what: fmt.Sprintf("topic %s has no partition %d", topic, f.partition), todo: fmt.Sprintf("give 0 to %d", count-1)}
	case err != nil && f.create && isUnknownTopic(err):
		return nil
	case err != nil && isUnknownTopic(err):
		return &failure{
			what: fmt.Sprintf("topic %s does not exist", topic),
			todo: "create it with `strandline topic create " + topic + "`, or give --allow-auto-topic-creation",
		}
	}
	return s.explain(err, "cannot produce to %s", topic)
}

func isUnknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition)
}
