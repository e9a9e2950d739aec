package config

import (
	"time"

	"strandline.dev/internal/kafka"
)

// Node is everything strandline.yaml says, nested like the file.
type Node struct {
	Node struct {
		ID   kafka.NodeID
		Rack string
	}
	// Roles has "controller", "broker" or both.
	Roles []string
	Data  struct {
		Dir string
	}
	Cluster struct {
		// Address is where other nodes reach this one.
		Address string
		// Controllers are "id@host:port"; empty means only this node.
		Controllers []string
	}
	Listeners []Listener
	HTTP      struct {
		Address string
	}
	Broker struct {
		// SessionTimeout is how long a silent broker stays unfenced.
		SessionTimeout time.Duration
	}
	Replica struct {
		// LagMax is how far behind in time a replica may be and stay in the ISR.
		LagMax time.Duration
	}
	Log struct {
		Level  string // debug, info, warn, error
		Format string // auto, text, json
	}
	// Kafka is the "kafka:" section.
	Kafka Broker
}

// Listener is one address for clients.
type Listener struct {
	Name    string
	Address string // host:port to bind
	// Advertise is host:port, or "auto": the local address of each accepted connection.
	Advertise string
}

// Defaults returns the settings of `serve` before any file, environment or flag.
func Defaults() Node { panic("not yet") }

// Dev returns the settings of `dev` before any flag.
func Dev() Node { panic("not yet") }

// Validate checks what single values cannot show. The error names every fault found, one a line.
func (n Node) Validate() error { panic("not yet") }
