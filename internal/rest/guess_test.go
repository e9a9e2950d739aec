package rest

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/server"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// guessPause is what a failed login costs, at the Kafka port and here.
const guessPause = 100 * time.Millisecond

// guessedDoor is a door that asks for passwords.
type guessedDoor struct {
	t       *testing.T
	net     sys.Net
	address string
	server  *http.Server
}

func newGuessedDoor(t *testing.T, n sys.Net) *guessedDoor {
	t.Helper()
	img, broker := securedImage(t), config.DefaultBroker(true)
	image := func() *metadata.Image { return img }
	authenticator := auth.NewAuthenticator(image, nil)
	access := auth.NewAuthorizer(image, auth.Options{Enforced: true, Supers: []kafka.Principal{{Type: "User", Name: "super"}}})
	dispatcher := server.New(server.Config{
		Node: 1, Image: image, Broker: func() config.Broker { return broker }, Access: access, Authenticator: authenticator,
		Wall: systest.NewWall(time.Now()), Log: slog.New(slog.DiscardHandler), Metrics: metrics.New().Broker, Audit: &noteTaker{},
	})
	g := &guessedDoor{t: t, net: n}
	g.address, g.server = newTestDoor(t, n, func(c *Config) {
		c.Server, c.Authenticator, c.Access = func() *server.Server { return dispatcher }, authenticator, access
	})
	return g
}

// guessedBubble runs a test with a door in a bubble, whose clock stands still while passwords are hashed.
func guessedBubble(t *testing.T, test func(g *guessedDoor)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := newGuessedDoor(t, systest.NewNet().Host("127.0.0.1"))
		test(g)
		_ = g.server.Close()
		synctest.Wait()
	})
}

// ask sends a request with each of the proofs over one connection, all at once, and returns the answers' statuses. Of a real connection it then closes
// its half.
func (g *guessedDoor) ask(proofs ...string) (statuses []int) {
	c, err := g.net.Dial(g.t.Context(), g.address)
	if err != nil {
		g.t.Error(err)
		return nil
	}
	defer c.Close()
	var all strings.Builder
	for _, p := range proofs {
		all.WriteString(request("GET /v1/topics/orders", "Authorization: "+p))
	}
	go func() {
		_, _ = io.WriteString(c, all.String())
		if half, ok := c.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	from := bufio.NewReader(c)
	for range proofs {
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			g.t.Error(err)
			return statuses
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		statuses = append(statuses, resp.StatusCode)
	}
	return statuses
}

// TestSecurity5_GuessingIsSlow: each wrong password or token holds up the connection it came on, as at the Kafka port, also when the guesses are sent
// together; a right one does not.
func TestSecurity5_GuessingIsSlow(t *testing.T) {
	guessedBubble(t, func(g *guessedDoor) {
		guesses := []string{"", "Digest x", "Bearer abc", basic("nobody", "wrong"), basic("reader", "wrong"), basic("reader", "wrong"), basic("reader", "")}
		began := time.Now()
		for i, status := range g.ask(guesses...) {
			if status != http.StatusUnauthorized {
				g.t.Errorf("%q is answered %d", guesses[i], status)
			}
		}
		if took, want := time.Since(began), time.Duration(len(guesses))*guessPause; took < want {
			g.t.Errorf("%d guesses took %v, want %v at least", len(guesses), took, want)
		}
		began = time.Now()
		good := basic("reader", "secret of reader")
		if got := g.ask(good, good); len(got) != 2 || got[0] == http.StatusUnauthorized || got[1] != got[0] {
			g.t.Errorf("a right password is answered %v", got)
		}
		if took := time.Since(began); took >= guessPause {
			g.t.Errorf("a right password took %v", took)
		}
	})
}

// TestSecurity5_GuessesHoldUpNobody: while many connections guess without an end, a right password on another one is answered without any pause.
func TestSecurity5_GuessesHoldUpNobody(t *testing.T) {
	guessedBubble(t, func(g *guessedDoor) {
		stop := make(chan struct{})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						g.ask(basic("reader", "wrong"))
					}
				}
			})
		}
		for _, user := range []string{"super", "reader"} {
			time.Sleep(guessPause / 2) // all of the others are in their pause
			began := time.Now()
			if got := g.ask(basic(user, "secret of "+user)); len(got) != 1 || got[0] == http.StatusUnauthorized {
				g.t.Errorf("%s is answered %v", user, got)
			}
			if took := time.Since(began); took >= guessPause {
				g.t.Errorf("%s waited %v", user, took)
			}
		}
		close(stop)
		all.Wait()
	})
}

// TestSecurity5_WhoHangsUpGuessesNoFaster: a client that closes its half behind its guesses has nothing of it, though its requests count as given up.
func TestSecurity5_WhoHangsUpGuessesNoFaster(t *testing.T) {
	g := newGuessedDoor(t, sys.Real().Net)
	defer g.server.Close()
	const guesses = 5
	began := time.Now()
	got := g.ask(slices.Repeat([]string{basic("reader", "wrong")}, guesses)...)
	if took := time.Since(began); took < guesses*guessPause || len(got) != guesses {
		t.Errorf("%d guesses took %v, and are answered %v", guesses, took, got)
	}
}
