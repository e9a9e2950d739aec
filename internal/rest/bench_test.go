package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/embedded"
)

// batchRecords and batchValue are the batch of these benchmarks: 100 records of 1 KiB.
const batchRecords, batchValue = 100, 1024

// keeping keeps as many connections as these benchmarks use at a time.
var keeping = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// post publishes a prebuilt body.
func post(b *testing.B, url, body string) {
	resp, err := keeping.Post(url+"/v1/topics/bench/records", "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode != http.StatusCreated {
		b.Errorf("%v %v", resp, err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// several runs f again and again on each of four goroutines, for a time, and says how often a second.
func several(f func(worker int), d time.Duration) float64 {
	var all sync.WaitGroup
	counts := make([]int, 4)
	began := time.Now()
	for i := range counts {
		all.Go(func() {
			for ; time.Since(began) < d; counts[i]++ {
				f(i)
			}
		})
	}
	all.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(began).Seconds()
}

// BenchmarkPublishBatch publishes batches over REST and over the Kafka port of the same node, four at a time, each waiting for its answer, and
// reports how much of the Kafka port's throughput REST has. The Kafka client makes its batches of the same records.
func BenchmarkPublishBatch(b *testing.B) {
	broker := embedded.Start(b, embedded.Options{Topics: []embedded.Topic{{Name: "bench", Partitions: 8}}})
	value := strings.Repeat("a", batchValue)
	one := fmt.Sprintf(`{"routingKey":"k","value":{"text":%q}}`, value)
	body := `{"records":[` + strings.Repeat(one+",", batchRecords-1) + one + `]}`
	clients := make([]*kgo.Client, 4)
	for i := range clients {
		cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Brokers()...), kgo.DefaultProduceTopic("bench"), kgo.ProducerBatchCompression(kgo.NoCompression()))
		if err != nil {
			b.Fatal(err)
		}
		defer cl.Close()
		clients[i] = cl
	}
	for b.Loop() {
		rest := several(func(int) { post(b, broker.HTTP()[0], body) }, 3*time.Second)
		kafka := several(func(i int) {
			records := make([]*kgo.Record, batchRecords)
			for n := range records {
				records[n] = &kgo.Record{Key: []byte("k"), Value: []byte(value)}
			}
			if err := clients[i].ProduceSync(b.Context(), records...).FirstErr(); err != nil {
				b.Error(err)
			}
		}, 3*time.Second)
		b.ReportMetric(rest*batchRecords, "rest-records/s")
		b.ReportMetric(kafka*batchRecords, "kafka-records/s")
		b.ReportMetric(rest/kafka, "rest/kafka")
	}
}

// BenchmarkPublishSingles publishes 1,000 single records a second for five seconds and reports the 99th percentile of the time to the answer, counted
// from when each was due.
func BenchmarkPublishSingles(b *testing.B) {
	broker := embedded.Start(b, embedded.Options{Topics: []embedded.Topic{{Name: "bench", Partitions: 8}}})
	body := fmt.Sprintf(`{"routingKey":"k","value":{"text":%q}}`, strings.Repeat("a", batchValue))
	const rate, count = 1000, 5000
	for b.Loop() {
		took := make([]time.Duration, count)
		var all sync.WaitGroup
		tick := time.NewTicker(time.Second / rate)
		defer tick.Stop()
		began := time.Now()
		for i := 0; i < count; {
			<-tick.C
			for ; i < count && time.Since(began) >= time.Duration(i)*time.Second/rate; i++ { // a tick that is left out makes no request less
				due, answer := began.Add(time.Duration(i)*time.Second/rate), &took[i]
				all.Go(func() {
					post(b, broker.HTTP()[0], body)
					*answer = time.Since(due)
				})
			}
		}
		all.Wait()
		slices.Sort(took)
		b.ReportMetric(float64(took[count*99/100].Microseconds())/1000, "p99-ms")
	}
}
