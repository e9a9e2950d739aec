package auth

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
	"testing"

	"github.com/xdg-go/scram"

	"strandline.dev/internal/metadata"
)

// work counts what hashes were given.
type work struct{ bytes, sums int }

type countedHash struct {
	hash.Hash
	to *work
}

func (h *countedHash) Write(b []byte) (int, error) {
	h.to.bytes += len(b)
	return h.Hash.Write(b)
}

func (h *countedHash) Sum(b []byte) []byte {
	h.to.sums++
	return h.Hash.Sum(b)
}

// alikeWorld is an authenticator over an Image with a user alice, with both credentials as they are made here, and one that has a secret as a
// cluster has.
func alikeWorld(t *testing.T, secret bool, counted *work) *Authenticator {
	t.Helper()
	rs := []metadata.Record{}
	for _, m := range []metadata.ScramMechanism{metadata.ScramSHA256, metadata.ScramSHA512} {
		c, err := NewScram("alice", "right", m)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, metadata.ScramRecord{Credential: c})
	}
	if secret {
		rs = append(rs, metadata.ScramSecretRecord{Secret: []byte("0123456789abcdef0123456789abcdef")})
	}
	img, err := metadata.Empty().Apply(1, rs)
	if err != nil {
		t.Fatal(err)
	}
	a := NewAuthenticator(func() *metadata.Image { return img }, nil)
	a.hashOf = func(m metadata.ScramMechanism) func() hash.Hash {
		return func() hash.Hash { return &countedHash{hashOf(m)(), counted} }
	}
	return a
}

// TestSecurity5_UnknownUsersCostTheSame (C101): a wrong password takes as many hashes of as many bytes for a user who exists as for one who does not, by
// each mechanism and in each message, so that time does not tell who exists. What is counted is the work; the names have one length.
func TestSecurity5_UnknownUsersCostTheSame(t *testing.T) {
	for _, secret := range []bool{true, false} {
		var counted work
		a := alikeWorld(t, secret, &counted)
		spent := func(do func()) work {
			counted = work{}
			do()
			return counted
		}
		plain := func(user string) func() {
			return func() {
				if _, err := a.checkPassword(t.Context(), user, "wrong"); !errors.Is(err, ErrCredentials) {
					t.Errorf("%s: %v", user, err)
				}
			}
		}
		known, unknown := spent(plain("alice")), spent(plain("nobod"))
		if known != unknown || known.sums < 2*DefaultIterations {
			t.Errorf("PLAIN: %+v for alice, %+v for nobody", known, unknown)
		}
		for name, client := range map[string]scram.HashGeneratorFcn{Scram256: scram.SHA256, Scram512: scram.SHA512} {
			var each [2]string
			for i, user := range []string{"alice", "nobod"} {
				c, err := client.NewClientUnprepped(user, "wrong", "")
				if err != nil {
					t.Fatal(err)
				}
				talk := c.WithNonceGenerator(func() string { return "a-nonce-of-a-length" }).NewConversation()
				l, err := a.Begin(name)
				if err != nil {
					t.Fatal(err)
				}
				message, err := talk.Step("")
				if err != nil {
					t.Fatal(err)
				}
				var answer []byte
				first := spent(func() { answer, _, err = l.Step(t.Context(), []byte(message)) })
				if err != nil {
					t.Fatal(err)
				}
				if message, err = talk.Step(string(answer)); err != nil {
					t.Fatal(err)
				}
				last := spent(func() { _, _, err = l.Step(t.Context(), []byte(message)) })
				if !errors.Is(err, ErrCredentials) {
					t.Errorf("%s, %s: %v", name, user, err)
				}
				each[i] = fmt.Sprintf("first message %+v, last %+v", first, last)
			}
			if each[0] != each[1] {
				t.Errorf("%s: %s for alice; %s for nobody", name, each[0], each[1])
			}
		}
	}
}

// TestSecurity4_NamesThatLookLikeAnothers: a certificate whose name holds what separates the parts of a name is not taken for the administrator's.
func TestSecurity4_NamesThatLookLikeAnothers(t *testing.T) {
	rules, err := ParseNameRules("RULE:^CN=([^,]+).*$/$1/L")
	if err != nil {
		t.Fatal(err)
	}
	principal := func(n pkix.Name) string {
		id, err := rules.Identify(&x509.Certificate{Subject: n})
		if err != nil {
			return err.Error()
		}
		return id.Principal.Name
	}
	if got := principal(pkix.Name{CommonName: "Admin", Organization: []string{"x"}}); got != "admin" {
		t.Errorf("the administrator is %q", got)
	}
	for _, n := range []pkix.Name{
		{CommonName: "admin,O=x"}, {CommonName: "admin+O=x"}, {CommonName: "admin\\,"}, {CommonName: " admin"}, {CommonName: "admin "}, {CommonName: "#admin"},
		{CommonName: "admin\x00"}, {CommonName: "admin\n"}, {CommonName: "eve", OrganizationalUnit: []string{"CN=admin"}}, {OrganizationalUnit: []string{"x,CN=admin"}},
		{CommonName: "eve\nCN=admin"}, {CommonName: "=admin"}, {CommonName: ""},
	} {
		if got := principal(n); got == "admin" {
			t.Errorf("%q is taken for the administrator", n.String())
		}
	}
}

// TestSecurity4_SeveralCommonNames: a name with more than one common name is not taken for one that has only the last of them.
func TestSecurity4_SeveralCommonNames(t *testing.T) {
	rules, err := ParseNameRules("DEFAULT")
	if err != nil {
		t.Fatal(err)
	}
	common := func(names ...string) *x509.Certificate {
		var all pkix.RDNSequence
		for _, n := range names {
			all = append(all, pkix.RelativeDistinguishedNameSET{{Type: []int{2, 5, 4, 3}, Value: n}})
		}
		c := &x509.Certificate{}
		if c.RawSubject, err = asn1.Marshal(all); err != nil {
			t.Fatal(err)
		}
		c.Subject.FillFromRDNSequence(&all)
		return c
	}
	for want, c := range map[string]*x509.Certificate{
		"CN=admin": common("admin"), "CN=admin,CN=guests": common("guests", "admin"), "CN=guests,CN=admin": common("admin", "guests"), `CN=admin\,CN=guests`: common("admin,CN=guests"),
	} {
		if id, err := rules.Identify(c); err != nil || id.Principal.Name != want {
			t.Errorf("%q is %+v, %v", want, id, err)
		}
	}
}
