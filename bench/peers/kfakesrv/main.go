// Command kfakesrv runs franz-go's fake Kafka cluster in a process of its own: a peer without replication, sync or checks.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 19092, "port of the single broker")
	blackhole := flag.Bool("blackhole", false, "acknowledge produced records and drop them")
	synth := flag.Bool("synthetic", false, "answer every fetch from one canned 64 KiB batch of 1 KiB values")
	dir := flag.String("datadir", "", "persist here")
	sync := flag.Bool("sync", false, "fsync each batch")
	flag.Parse()
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.Ports(*port)}
	if *blackhole {
		opts = append(opts, kfake.BlackholeProduce())
	}
	if *synth {
		opts = append(opts, kfake.SyntheticFetch(kfake.SyntheticBatch{Records: 64, RecordBytes: 1024}))
	}
	if *dir != "" {
		opts = append(opts, kfake.DataDir(*dir))
	}
	if *sync {
		opts = append(opts, kfake.SyncWrites())
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer c.Close()
	fmt.Println(c.ListenAddrs())
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	<-ch
}
