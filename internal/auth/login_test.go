package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"strandline.dev/internal/metadata"
)

// issuer is an OpenID provider that the test runs.
type issuer struct {
	t       *testing.T
	server  *httptest.Server
	key     *ecdsa.PrivateKey
	fetches atomic.Int64 // of keys
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.server.URL, "jwks_uri": i.server.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256", "HS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k1", Algorithm: "ES256", Use: "sig"}}})
	})
	i.server = httptest.NewServer(mux)
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) sign(alg jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		i.t.Fatal(err)
	}
	text, _ := json.Marshal(claims)
	signed, err := s.Sign(text)
	if err != nil {
		i.t.Fatal(err)
	}
	token, _ := signed.CompactSerialize()
	return token
}

func (i *issuer) claims(change func(map[string]any)) map[string]any {
	c := map[string]any{"iss": i.server.URL, "aud": "strandline", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	if change != nil {
		change(c)
	}
	return c
}

func (i *issuer) authenticator() *Authenticator {
	t := NewTokens(TokenConfig{Issuer: i.server.URL, Audience: "strandline", Claim: "sub", Dial: func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}})
	i.t.Cleanup(i.server.CloseClientConnections)
	return NewAuthenticator(func() *metadata.Image { return metadata.Empty() }, t)
}

// bearerLogin is one login with a token.
func bearerLogin(t *testing.T, a *Authenticator, token string) (*Identity, error) {
	l, err := a.Begin(OAuthBearer)
	if err != nil {
		t.Fatal(err)
	}
	answer, id, err := l.Step(context.Background(), []byte("n,,\x01auth=Bearer "+token+"\x01\x01"))
	if id != nil || err != nil {
		return id, err
	}
	if !strings.Contains(string(answer), "invalid_token") {
		t.Errorf("a refused token is answered %q", answer)
	}
	_, id, err = l.Step(context.Background(), []byte{1})
	return id, err
}

// A token counts when this issuer has signed it, for us, and it has not expired (R148).
func TestR148_Tokens(t *testing.T) {
	i := newIssuer(t)
	a := i.authenticator()
	good := i.sign(jose.ES256, i.key, "k1", i.claims(nil))
	id, err := bearerLogin(t, a, good)
	if err != nil || id.Principal != alice || time.Until(id.Expires) > time.Hour || time.Until(id.Expires) < 50*time.Minute {
		t.Fatalf("%+v %v", id, err)
	}
	if a.Holds(id, time.Now()) != nil || !errors.Is(a.Holds(id, id.Expires), ErrExpired) {
		t.Error("the session does not end with the token")
	}
	stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	shared := []byte(strings.Repeat("s", 32))
	for name, token := range map[string]string{
		"expired":          i.sign(jose.ES256, i.key, "k1", i.claims(func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() })),
		"for another":      i.sign(jose.ES256, i.key, "k1", i.claims(func(c map[string]any) { c["aud"] = "other" })),
		"of another":       i.sign(jose.ES256, i.key, "k1", i.claims(func(c map[string]any) { c["iss"] = "http://other" })),
		"without a name":   i.sign(jose.ES256, i.key, "k1", i.claims(func(c map[string]any) { delete(c, "sub") })),
		"another key":      i.sign(jose.ES256, stranger, "k1", i.claims(nil)),
		"a shared secret":  i.sign(jose.HS256, shared, "k1", i.claims(nil)),
		"cut":              good[:len(good)-4],
		"no token":         "x",
		"not even signed":  "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.",
		"beyond the limit": strings.Repeat("a", TokenMax+1),
	} {
		if id, err := bearerLoginAny(a, token); err == nil || id != nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func bearerLoginAny(a *Authenticator, token string) (*Identity, error) {
	l, err := a.Begin(OAuthBearer)
	if err != nil {
		return nil, err
	}
	_, id, err := l.Step(context.Background(), []byte("n,,\x01auth=Bearer "+token+"\x01\x01"))
	if id == nil && err == nil {
		_, id, err = l.Step(context.Background(), []byte{1})
	}
	return id, err
}

// A flood of tokens with unknown keys does not become one of fetches, and good tokens go on.
func TestTokens_FetchesAreRare(t *testing.T) {
	i := newIssuer(t)
	a := i.authenticator()
	stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	for n := range 50 {
		if _, err := bearerLoginAny(a, i.sign(jose.ES256, stranger, "unknown"+string(rune('a'+n)), i.claims(nil))); err == nil {
			t.Fatal("accepted")
		}
	}
	if got := i.fetches.Load(); got != 1 {
		t.Errorf("%d fetches of keys for 50 bad tokens", got)
	}
	if _, err := bearerLogin(t, a, i.sign(jose.ES256, i.key, "k1", i.claims(nil))); err != nil {
		t.Errorf("a good token: %v", err)
	}
}

// The file of users is read as it is written, and what is no credential is refused without being shown.
func TestUsers_File(t *testing.T) {
	c, err := NewScram("admin", "secret", metadata.ScramSHA512)
	if err != nil {
		t.Fatal(err)
	}
	line := UserLine(c)
	u, err := ParseUsers([]byte("# users\n\n" + line + "\n"))
	if err != nil || u.find("admin", metadata.ScramSHA512) == nil || UserLine(*u.find("admin", metadata.ScramSHA512)) != line {
		t.Fatalf("%v", err)
	}
	if strings.Contains(line, "secret") {
		t.Error("the password is in the line")
	}
	a := NewAuthenticator(func() *metadata.Image { return metadata.Empty() }, nil)
	a.SetUsers(u)
	id, err := a.checkPassword(context.Background(), "admin", "secret")
	if err != nil || a.Holds(id, time.Now()) != nil {
		t.Fatalf("%+v %v", id, err)
	}
	if _, err := a.checkPassword(context.Background(), "admin", "wrong"); !errors.Is(err, ErrCredentials) {
		t.Errorf("%v", err)
	}
	a.SetUsers(&Users{})
	if a.Holds(id, time.Now()) == nil {
		t.Error("a user who is taken out of the file stays")
	}
	for name, bad := range map[string]string{
		"no verifier": "admin", "twice": line + "\n" + line, "a password": "admin SCRAM-SHA-512 hunter2", "another mechanism": strings.Replace(line, "SCRAM-SHA-512", "MD5", 1),
		"few iterations": strings.Replace(line, "$4096:", "$10:", 1), "the wrong keys": strings.Replace(line, "SCRAM-SHA-512", "SCRAM-SHA-256", 1),
		"not base64": strings.Replace(line, ":", ":!", 1),
	} {
		if _, err := ParseUsers([]byte(bad)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Rules for names are Kafka's; what is no rule is refused.
func TestNameRules(t *testing.T) {
	for _, bad := range []string{"", "RULE:", "RULE:a/b", "RULE:(/x/", "X", "DEFAULT DEFAULT", "RULE:a/b/Q"} {
		if _, err := ParseNameRules(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	r, err := ParseNameRules(`RULE:^CN=(.*?),OU=(.*)$/$1@$2/L , RULE:^CN=([^,]+)$/$1/U,DEFAULT`)
	if err != nil || len(r.list) != 3 || r.list[0].change != "L" || r.list[1].change != "U" {
		t.Errorf("%+v %v", r, err)
	}
}
