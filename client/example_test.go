package client_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/client"
	"strandline.dev/embedded"
)

func ExampleWorker() {
	broker, err := embedded.Open(embedded.Options{Topics: []embedded.Topic{{Name: "orders"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Stop()
	publisher, err := client.NewPublisher(client.PublisherOptions{Brokers: broker.Brokers()})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	for i, status := range []string{"placed", "paid", "shipped"} {
		r := &kgo.Record{Topic: "orders", Key: []byte("order-42"), Value: []byte(status)}
		if _, err := publisher.Publish(context.Background(), fmt.Sprintf("order-42/%d", i), r); err != nil {
			log.Fatal(err)
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	worker, err := client.NewWorker(client.WorkerOptions{
		Brokers: broker.Brokers(), Group: "fulfillment", Topics: []string{"orders"},
		Process: func(_ context.Context, r *kgo.Record) error {
			fmt.Printf("%s %s\n", r.Key, r.Value) // nil commits, an error is tried again
			if string(r.Value) == "shipped" {
				cancel()
			}
			return nil
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(worker.Run(ctx))
	// Output:
	// order-42 placed
	// order-42 paid
	// order-42 shipped
	// <nil>
}

func ExamplePublisher_Publish() {
	broker, err := embedded.Open(embedded.Options{Topics: []embedded.Topic{{Name: "orders"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Stop()
	publisher, err := client.NewPublisher(client.PublisherOptions{Brokers: broker.Brokers()})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	receipt, err := publisher.Publish(context.Background(), "order-42/0", &kgo.Record{Topic: "orders", Value: []byte("placed")})
	switch {
	case client.OutcomeUnknown(err):
		fmt.Println("stored or not: publish it again with the same id")
	case err != nil:
		fmt.Println("not stored:", err)
	default:
		fmt.Println("stored:", receipt.RecordID, receipt.Partition, receipt.Offset)
	}
	// Output: stored: order-42/0 0 0
}
