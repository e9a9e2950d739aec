package interop

import (
	"os/exec"
	"strings"
	"testing"
)

func kcat(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(deadline(t), "kcat", args...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("kcat %v: %v: %s", args, err, out)
	}
	return string(out)
}

// TestKcat_ListProduceConsume runs Debian's kcat: metadata, produce with keys and headers, consume, offsets by time.
func TestKcat_ListProduceConsume(t *testing.T) {
	b := startBroker(t)
	kcat(t, "k1:v1\nk2:v2\n", "-b", b.addr, "-P", "-t", "kc", "-p", "0", "-K", ":", "-H", "h=1", "-H", "h=2") // dev creates topics on first use
	if l := kcat(t, "", "-b", b.addr, "-L"); !strings.Contains(l, `topic "kc" with 1 partitions`) {
		t.Errorf("kcat -L does not show the topic: %s", l)
	}
	out := kcat(t, "", "-b", b.addr, "-C", "-t", "kc", "-o", "beginning", "-e", "-q", "-f", "%o|%k|%s|%h\n")
	if want := "0|k1|v1|h=1,h=2\n1|k2|v2|h=1,h=2\n"; out != want {
		t.Errorf("kcat -C: %q, want %q", out, want)
	}
	if q := kcat(t, "", "-b", b.addr, "-Q", "-t", "kc:0:1"); !strings.Contains(q, "kc [0] offset 0") {
		t.Errorf("kcat -Q: %q", q)
	}
}
