package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/config"
)

func TestADurationIsLoggedWithItsUnit(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		cfg := config.Node{}
		cfg.Log.Format = format
		newLogger(cfg, &out).With("pause", time.Second).Info("x", "stalled", 30*time.Second)
		if s := out.String(); !strings.Contains(s, "30s") || !strings.Contains(s, "1s") {
			t.Errorf("%s: %s", format, s)
		}
	}
}
