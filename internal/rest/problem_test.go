package rest

import (
	"net/http"
	"os"
	"regexp"
	"testing"

	"strandline.dev/internal/kafka"
)

// TestR185_EveryCodeHasAStatus: what the server's one error table can answer has a status here, and only UNKNOWN_SERVER_ERROR is 500.
func TestR185_EveryCodeHasAStatus(t *testing.T) {
	source, err := os.ReadFile("../server/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`kafka\.([A-Z]\w+)`).FindAllStringSubmatch(string(source), -1)
	byName := map[string]kafka.ErrorCode{}
	for code := kafka.ErrorCode(1); code <= 136; code++ {
		byName[code.String()] = code
	}
	constants, err := os.ReadFile("../kafka/errorcode.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]kafka.ErrorCode{}
	for _, m := range regexp.MustCompile(`\n\t(\w+):\s+\{"([A-Z_]+)"`).FindAllStringSubmatch(string(constants), -1) {
		names[m[1]] = byName[m[2]]
	}
	judged := 0
	for _, m := range named {
		code, ok := names[m[1]]
		if !ok || code == kafka.None || m[1] == "UnknownServerError" || m[1] == "None" {
			continue
		}
		judged++
		if p := failed(code, nil); p.Status == http.StatusInternalServerError {
			t.Errorf("%s has no status", m[1])
		}
	}
	if judged < 30 {
		t.Errorf("%d codes were found in the server's table", judged)
	}
}

// TestR185_FourClasses: bad request, throttled, unavailable partition and an offset outside retention are told apart, and overload is not expiry (R35).
func TestR185_FourClasses(t *testing.T) {
	for code, want := range map[kafka.ErrorCode]struct {
		status    int
		retriable bool
		wait      bool
	}{
		kafka.InvalidRequest:          {422, false, false},
		kafka.ThrottlingQuotaExceeded: {429, true, true},
		kafka.LeaderNotAvailable:      {503, true, true},
		kafka.OffsetOutOfRange:        {416, false, false},
		kafka.UnknownTopicOrPartition: {404, false, false},
		kafka.RequestTimedOut:         {504, true, false},
	} {
		p := failed(code, nil)
		if p.Status != want.status || p.Retriable != want.retriable || (p.GetHeaders().Get("Retry-After") != "") != want.wait {
			t.Errorf("%v: %+v", code, p)
		}
	}
}
