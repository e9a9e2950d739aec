package node

import "testing"

// TestC090_FileShares: the shares fit into what the process may have, and each kind gets some of it.
func TestC090_FileShares(t *testing.T) {
	for _, limit := range []int64{1, 64, 256, 512, 1024, 4096, 20_000, 1 << 20, 1 << 40} {
		segments, connections := fileShares(limit)
		if segments < 1 || connections < 1 {
			t.Errorf("limit %d: %d segments, %d connections", limit, segments, connections)
		}
		if kept := limit - segments - int64(connections); limit >= 64 && kept < min(filesKept, limit/filesKeptPart) {
			t.Errorf("limit %d: %d segments and %d connections leave %d for the rest", limit, segments, connections, kept)
		}
	}
	if segments, connections := fileShares(0); segments != 0 || connections != 0 {
		t.Errorf("without a known limit: %d, %d; want the defaults", segments, connections)
	}
}
