// Command coldfetch measures first fetches from a log that is not in the page cache: at its start and in its middle, where the place has
// to be found first. bench/coldfetch.sh builds what it needs.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	topic      = "cold"
	valueBytes = 1024
	records    = 1 << 20 // 1 GiB and what their headers take
	// fetchBytes is what clients ask of a partition by default.
	fetchBytes = 1 << 20
)

func main() {
	binary := flag.String("strandline", "", "`FILE` to start")
	work := flag.String("work", os.TempDir(), "`DIR` for data")
	fetches := flag.Int("fetches", 50, "fetches at each place")
	flag.Parse()
	if err := run(*binary, *work, *fetches); err != nil {
		fmt.Fprintln(os.Stderr, "coldfetch:", err)
		os.Exit(1)
	}
}

func run(binary, work string, fetches int) error {
	dir, err := os.MkdirTemp(work, "coldfetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(binary, "dev", "--data-dir", dir+"/data", "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-level", "warn")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(line, "kafka=")
	addr, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if err := fill(addr); err != nil {
		return err
	}
	return measure(addr, fetches)
}

// fill writes the log, in batches of up to 64 KiB.
func fill(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytes(64<<10),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(50_000))
	if err != nil {
		return err
	}
	defer cl.Close()
	segments := "2147483647" // one segment
	configs := map[string]*string{"segment.bytes": &segments}
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 1, 1, configs, topic); err != nil {
		return err
	}
	value := make([]byte, valueBytes)
	failed := make(chan error, 1)
	for range records {
		cl.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// measure fetches at both places in turn.
func measure(addr string, fetches int) error {
	var start, middle []float64
	for i := range fetches {
		for _, place := range []struct {
			from int64
			ms   *[]float64
		}{{0, &start}, {records / 2, &middle}} {
			offset := place.from + int64(i)*997 // steps that are no multiple of a batch
			ms, err := coldFetch(addr, offset)
			if err != nil {
				return err
			}
			*place.ms = append(*place.ms, ms)
		}
	}
	a, b := median(start), median(middle)
	fmt.Printf("first fetch of up to %d KiB from a log of %d MiB, page cache dropped before each, %d fetches at each place\n", fetchBytes>>10, records*valueBytes>>20, fetches)
	fmt.Printf("start:  p50 %.2f ms (%.2f..%.2f)\nmiddle: p50 %.2f ms (%.2f..%.2f)\nratio:  %.2f\n", a, start[0], start[len(start)-1], b, middle[0], middle[len(middle)-1], b/a)
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// coldFetch drops the page cache and times one fetch.
func coldFetch(addr string, offset int64) (ms float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err != nil {
		return 0, err
	}
	if out, err := exec.Command("sync").CombinedOutput(); err != nil { // dirty pages stay when caches are dropped
		return 0, fmt.Errorf("sync: %w: %s", err, out)
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		return 0, err
	}
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 50<<20, 1, 500
	t, p := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, fetchBytes
	t.Topic, t.TopicID, t.Partitions = topic, topics[topic].ID, append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	began := time.Now()
	resp, err := req.RequestWith(ctx, cl.Broker(1))
	if err != nil {
		return 0, err
	}
	ms = time.Since(began).Seconds() * 1e3
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || len(resp.Topics[0].Partitions[0].RecordBatches) < fetchBytes/2 {
		return 0, fmt.Errorf("fetch at %d: not the records that are there: error %d", offset, resp.ErrorCode)
	}
	return ms, nil
}
