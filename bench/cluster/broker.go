package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"strandline.dev/test/chaos/rig"
)

// ackMetric is the brokers' own histogram: from the receipt of a publish to its acknowledgement.
const ackMetric = "strandline_produce_ack_seconds_bucket{le=\""

// brokerAcks are counts below or at bounds in seconds, of all nodes together.
type brokerAcks map[float64]float64

// page reads the metrics of a node.
func page(ctx context.Context, n *rig.Node) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/metrics", nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics of node %d: %s", n.ID, resp.Status)
	}
	return string(body), err
}

// brokersAcks sums up what the nodes have counted since their starts.
func brokersAcks(ctx context.Context, c *rig.Cluster) (brokerAcks, error) {
	sum := brokerAcks{}
	for _, n := range c.Nodes {
		text, err := page(ctx, n)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(strings.NewReader(text))
		for lines.Scan() {
			rest, ok := strings.CutPrefix(lines.Text(), ackMetric)
			if !ok {
				continue
			}
			le, count, ok := strings.Cut(rest, "\"} ")
			bound, err := strconv.ParseFloat(le, 64) // +Inf too
			n, err2 := strconv.ParseFloat(count, 64)
			if !ok || err != nil || err2 != nil {
				return nil, fmt.Errorf("not understood: %s", lines.Text())
			}
			sum[bound] += n
		}
	}
	return sum, nil
}

// atMost is the least bound that holds a part of the publishes that were answered between two sums.
func (now brokerAcks) atMost(before brokerAcks, part float64) time.Duration {
	total, least := 0.0, 0.0
	for bound := range now {
		total = max(total, now[bound]-before[bound])
	}
	for bound := range now {
		if now[bound]-before[bound] >= part*total && (least == 0 || bound < least) {
			least = bound
		}
	}
	return time.Duration(min(least, 3600) * float64(time.Second))
}
