package embedded_test

import (
	"context"
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/embedded"
)

func ExampleOpen() {
	broker, err := embedded.Open(embedded.Options{Topics: []embedded.Topic{{Name: "orders", Partitions: 3}}})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Stop()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Brokers()...))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	stored := client.ProduceSync(context.Background(), &kgo.Record{Topic: "orders", Key: []byte("order-42"), Value: []byte("paid")})
	fmt.Println(stored.FirstErr(), stored[0].Record.Offset)
	// Output: <nil> 0
}
