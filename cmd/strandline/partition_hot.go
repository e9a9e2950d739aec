package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// hotFactor is how many times the average of its topic a partition takes to be hot.
	hotFactor = 2
	// hotSampledMax bounds the hot partitions whose keys are looked at, hotKeysShown the keys that are shown of each.
	hotSampledMax = 3
	hotKeysShown  = 5
	// sparseRate is the records a second and partition below which a topic with more than sparsePartitions has more of them than it needs.
	sparseRate       = 1.0
	sparsePartitions = 12
)

// hotFlags are the flags of `partition hot`.
type hotFlags struct {
	last   time.Duration
	top    int
	sample int64
}

func newPartitionHotCommand(a *app) *cobra.Command {
	var f hotFlags
	cmd := &cobra.Command{
		Use:   "hot [TOPIC...]",
		Short: "Show which partitions get most records, and which keys make them hot",
		Long: `Show the partitions that got most records lately, by the records' timestamps; without TOPIC, of all topics. A partition that got twice the average of its
topic or more is hot: its newest records are read (which takes the right to), and the keys that come most often are shown, counted in bounded memory,
so that a count may be too high by at most what "over" says.

Records of one key stay in one partition, in order, and one member of a group reads it: more members do not help a hot key, and the broker never
splits one. What helps is a better key, or one composed of two (order-42 and the line of the order), which is for the application to decide. A
topic with many partitions for few records is named, too: each costs files, replication and time at a fail-over.`,
		Example: `  strandline partition hot
  strandline partition hot orders --last 10m
  strandline partition hot -o json | jq 'select(.hot)'`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.partitionHot(cmd.Context(), args, f) },

		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().DurationVar(&f.last, "last", 5*time.Minute, "look at records of this time until now")
	cmd.Flags().IntVar(&f.top, "top", 10, "show that many partitions")
	cmd.Flags().Int64Var(&f.sample, "sample", 2000, "read that many records of each hot partition; 0 reads none")
	return cmd
}

// hotPartition is one line of `partition hot -o json`.
type hotPartition struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Records   int64      `json:"records"` // of the time that was looked at
	Rate      float64    `json:"recordsPerSecond"`
	Share     float64    `json:"share"`   // of its topic
	Average   float64    `json:"average"` // records of a partition of its topic
	Hot       bool       `json:"hot"`
	Sampled   int64      `json:"sampled,omitempty"`
	Keys      []keyCount `json:"keys,omitempty"`
	end       int64
}

func (a *app) partitionHot(ctx context.Context, topics []string, f hotFlags) error {
	if f.last < time.Second || f.top < 1 || f.sample < 0 {
		return usagef("--last: want a second or more, --top: 1 or more, --sample: 0 or more")
	}
	s, err := a.connect(kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		return err
	}
	defer s.close()
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	all, err := s.arrivals(bounded, topics, f.last)
	if err != nil {
		return s.explain(err, "cannot look at the partitions")
	}
	found := judgeHot(all, f.last)
	sparse := sparseTopics(all, f.last)
	found = found[:min(f.top, len(found))]
	sampled := 0
	for i := range found {
		if found[i].Hot && f.sample > 0 && sampled < hotSampledMax {
			sampled++
			if err := s.sampleKeys(ctx, &found[i], f.sample); err != nil {
				return s.explain(err, "cannot read the newest records of %s, partition %d", found[i].Topic, found[i].Partition)
			}
		}
	}
	return a.printer(s.settings).printHot(found, sparse, f.last)
}

// arrivals counts the records of each partition since a time.
func (s *session) arrivals(ctx context.Context, topics []string, last time.Duration) ([]hotPartition, error) {
	ends, err := s.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	if err := ends.Error(); err != nil {
		return nil, err
	}
	starts, err := s.admin.ListOffsetsAfterMilli(ctx, time.Now().Add(-last).UnixMilli(), topics...)
	if err != nil {
		return nil, err
	}
	var out []hotPartition
	ends.Each(func(o kadm.ListedOffset) {
		from, ok := starts.Lookup(o.Topic, o.Partition)
		if !ok || from.Err != nil || strings.HasPrefix(o.Topic, "__") {
			return
		}
		out = append(out, hotPartition{Topic: o.Topic, Partition: o.Partition, Records: max(o.Offset-from.Offset, 0), end: o.Offset})
	})
	return out, nil
}

// judgeHot sorts partitions by their records and says which are hot; those without records are left out.
func judgeHot(all []hotPartition, last time.Duration) []hotPartition {
	sum, count := map[string]int64{}, map[string]int{}
	for _, p := range all {
		sum[p.Topic] += p.Records
		count[p.Topic]++
	}
	var out []hotPartition
	for _, p := range all {
		if p.Records == 0 {
			continue
		}
		p.Rate = float64(p.Records) / last.Seconds()
		p.Share = float64(p.Records) / float64(sum[p.Topic])
		p.Average = float64(sum[p.Topic]) / float64(count[p.Topic])
		p.Hot = count[p.Topic] > 1 && float64(p.Records) >= hotFactor*p.Average
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b hotPartition) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

// sparseTopics names the topics with more partitions than their records need (R186).
func sparseTopics(all []hotPartition, last time.Duration) []string {
	sum, count := map[string]int64{}, map[string]int{}
	for _, p := range all {
		sum[p.Topic] += p.Records
		count[p.Topic]++
	}
	var out []string
	for _, topic := range slices.Sorted(maps.Keys(count)) {
		rate := float64(sum[topic]) / last.Seconds()
		if count[topic] > sparsePartitions && rate/float64(count[topic]) < sparseRate {
			out = append(out, fmt.Sprintf("%s has %d partitions for %.3g records a second", topic, count[topic], rate))
		}
	}
	return out
}

// sampleKeys reads the newest records of a partition and counts their keys.
func (s *session) sampleKeys(ctx context.Context, p *hotPartition, sample int64) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	from := max(p.end-min(sample, p.Records), 0)
	s.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{p.Topic: {p.Partition: kgo.NewOffset().At(from)}})
	defer s.client.RemoveConsumePartitions(map[string][]int32{p.Topic: {p.Partition}})
	var keys topKeys
	for next := from; next < p.end; {
		fetches := s.client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return errs[0].Err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Topic != p.Topic || r.Partition != p.Partition || r.Offset >= p.end {
				return
			}
			keys.add(string(r.Key))
			next = r.Offset + 1
		})
	}
	p.Sampled, p.Keys = keys.total, keys.top(hotKeysShown)
	return nil
}

func (p printer) printHot(found []hotPartition, sparse []string, last time.Duration) error {
	if p.json {
		for _, h := range found {
			if err := p.object(h); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		fmt.Fprintf(p.w, "no records in the last %v\n", last)
	}
	var rows [][]string
	for _, h := range found {
		state := ""
		if h.Hot {
			state = fmt.Sprintf("hot: %.1f times the average", float64(h.Records)/h.Average)
		}
		rows = append(rows, []string{h.Topic, fmt.Sprint(h.Partition), fmt.Sprint(h.Records), fmt.Sprintf("%.1f", h.Rate), fmt.Sprintf("%.0f%%", 100*h.Share), state})
	}
	if err := p.table([]string{"TOPIC", "PARTITION", "RECORDS", "PER SECOND", "OF ITS TOPIC", ""}, rows); err != nil {
		return err
	}
	for _, h := range found {
		if h.Sampled == 0 {
			continue
		}
		fmt.Fprintf(p.w, "\nkeys of the newest %d records of %s, partition %d:\n", h.Sampled, h.Topic, h.Partition)
		for _, k := range h.Keys {
			fmt.Fprintf(p.w, "  %3.0f%%  %.80q\n", 100*float64(k.Count)/float64(h.Sampled), k.Key)
		}
		if len(h.Keys) == 0 {
			fmt.Fprintln(p.w, "  no key comes twice: it is not a key that makes it hot")
		}
		fmt.Fprintln(p.w, "  One member of a group reads a partition: more members will not help. A better or composed key will; see --help.")
	}
	for _, line := range sparse {
		fmt.Fprintf(p.w, "\n%s: fewer would do, and cost less in files, replication and fail-over.\n", line)
	}
	return nil
}
