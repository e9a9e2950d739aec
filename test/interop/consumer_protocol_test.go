package interop

import (
	"slices"
	"testing"
)

// consumerProtocolClients are those of the clients that speak the consumer protocol (KIP-848), by the names of the programs.
var consumerProtocolClients = []string{"franz-go", "confluent-kafka-go", "kafka-clients-4.4.0"}

// TestConsumerProtocol walks the clients that can through the broker once more, with members of the consumer protocol. They take it from
// GROUP_PROTOCOL; that the coordinator had groups of that type is in its log.
func TestConsumerProtocol(t *testing.T) {
	for _, p := range programs(t) {
		if !slices.Contains(consumerProtocolClients, p.name) {
			continue
		}
		p.name += "-consumer"
		p.env = append(p.env, "GROUP_PROTOCOL=consumer")
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}
