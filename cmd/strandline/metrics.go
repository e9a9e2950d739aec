package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// metricsBytesMax bounds a page of metrics.
	metricsBytesMax = 16 << 20
	// metricsTimeMax bounds the wait for one.
	metricsTimeMax = 2 * time.Second
)

// readMetrics reads the named metrics, those without labels, from a Prometheus page; what cannot be read is not in the answer.
func readMetrics(ctx context.Context, url string, names ...string) map[string]float64 {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeMax)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	read := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, metricsBytesMax))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil && slices.Contains(names, name) {
			read[name] = n
		}
	}
	return read
}
