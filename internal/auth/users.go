package auth

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"strandline.dev/internal/metadata"
)

// Mechanisms are the names of SASL mechanisms.
const (
	Plain       = "PLAIN"
	Scram256    = "SCRAM-SHA-256"
	Scram512    = "SCRAM-SHA-512"
	OAuthBearer = "OAUTHBEARER"
)

// scramMechanism is the number of a SCRAM mechanism by name.
func scramMechanism(name string) (metadata.ScramMechanism, bool) {
	switch name {
	case Scram256:
		return metadata.ScramSHA256, true
	case Scram512:
		return metadata.ScramSHA512, true
	}
	return 0, false
}

func hashOf(m metadata.ScramMechanism) func() hash.Hash {
	if m == metadata.ScramSHA256 {
		return sha256.New
	}
	return sha512.New
}

// NewScram makes the credential of a password, with a salt of its own.
func NewScram(user, password string, m metadata.ScramMechanism) (metadata.ScramCredential, error) {
	salt, salted, err := Salted(password, m)
	if err != nil {
		return metadata.ScramCredential{}, err
	}
	return FromSalted(user, m, DefaultIterations, salt, salted), nil
}

// Salted salts a password with a salt of its own, DefaultIterations times.
func Salted(password string, m metadata.ScramMechanism) (salt, salted []byte, err error) {
	salt = make([]byte, 24)
	if _, err = rand.Read(salt); err != nil {
		return nil, nil, err
	}
	salted, err = pbkdf2.Key(hashOf(m), password, salt, DefaultIterations, hashOf(m)().Size())
	return salt, salted, err
}

// FromSalted makes the credential of a salted password. The salted password, which would let its holder log in, is not in it.
func FromSalted(user string, m metadata.ScramMechanism, iterations int32, salt, salted []byte) metadata.ScramCredential {
	h := hashOf(m)
	return metadata.ScramCredential{
		User: user, Mechanism: m, Iterations: iterations, Salt: bytes.Clone(salt),
		StoredKey: digest(h, mac(h, salted, "Client Key")), ServerKey: mac(h, salted, "Server Key"),
	}
}

// SaltedFault says why a client's salted password can be none, or "".
func SaltedFault(m metadata.ScramMechanism, salted []byte) string {
	switch {
	case m != metadata.ScramSHA256 && m != metadata.ScramSHA512:
		return fmt.Sprintf("SCRAM mechanism %d is unknown", m)
	case len(salted) != hashOf(m)().Size():
		return fmt.Sprintf("the salted password has %d bytes, that of %v has %d", len(salted), m, hashOf(m)().Size())
	}
	return ""
}

func mac(h func() hash.Hash, key []byte, text string) []byte {
	m := hmac.New(h, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func digest(h func() hash.Hash, b []byte) []byte {
	d := h()
	d.Write(b)
	return d.Sum(nil)
}

// knows says whether a password is the credential's, by hashes of its mechanism. It takes the time of hashing, whatever the answer is.
func knows(h func() hash.Hash, c *metadata.ScramCredential, password string) bool {
	salted, err := pbkdf2.Key(h, password, c.Salt, int(c.Iterations), h().Size())
	if err != nil {
		return false
	}
	return hmac.Equal(digest(h, mac(h, salted, "Client Key")), c.StoredKey)
}

// Users are the users of the configuration's file: those who are there before the cluster is.
type Users struct {
	list []metadata.ScramCredential
}

// ParseUsers reads a file of lines "NAME MECHANISM$ITERATIONS:SALT$STOREDKEY:SERVERKEY" (base64).
// Empty lines and those that begin with # say nothing.
func ParseUsers(file []byte) (*Users, error) {
	u := &Users{}
	lines := bufio.NewScanner(bytes.NewReader(file))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c, err := parseUser(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err) // never the line itself: it is a secret
		}
		if u.find(c.User, c.Mechanism) != nil {
			return nil, fmt.Errorf("line %d: %s has a credential for %v already", n, c.User, c.Mechanism)
		}
		if len(u.list) == usersMax {
			return nil, fmt.Errorf("line %d: more than %d users; create further ones in the cluster", n, usersMax)
		}
		u.list = append(u.list, c)
	}
	return u, lines.Err()
}

func parseUser(line string) (c metadata.ScramCredential, err error) {
	const form = "want NAME MECHANISM$ITERATIONS:SALT$STOREDKEY:SERVERKEY"
	name, verifier, ok := strings.Cut(line, " ")
	parts := strings.FieldsFunc(verifier, func(r rune) bool { return r == '$' || r == ':' })
	if !ok || len(parts) != 5 {
		return c, fmt.Errorf("%s", form)
	}
	m, ok := scramMechanism(strings.TrimSpace(parts[0]))
	if !ok {
		return c, fmt.Errorf("the mechanism is neither %s nor %s", Scram256, Scram512)
	}
	n, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil || n < metadata.ScramIterationsMin || n > metadata.ScramIterationsMax {
		return c, fmt.Errorf("the iterations are not a number from %d to %d", metadata.ScramIterationsMin, metadata.ScramIterationsMax)
	}
	c = metadata.ScramCredential{User: name, Mechanism: m, Iterations: int32(n)}
	for i, to := range []*[]byte{&c.Salt, &c.StoredKey, &c.ServerKey} {
		if *to, err = base64.StdEncoding.DecodeString(parts[2+i]); err != nil || len(*to) == 0 {
			return c, fmt.Errorf("%s", form)
		}
	}
	if size := hashOf(m)().Size(); len(c.StoredKey) != size || len(c.ServerKey) != size {
		return c, fmt.Errorf("the keys are not those of %v", m)
	}
	return c, nil
}

// UserLine is a credential as a line of the file that ParseUsers reads.
func UserLine(c metadata.ScramCredential) string {
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s %v$%d:%s$%s:%s", c.User, c.Mechanism, c.Iterations, text(c.Salt), text(c.StoredKey), text(c.ServerKey))
}

func (u *Users) find(user string, m metadata.ScramMechanism) *metadata.ScramCredential {
	if u == nil {
		return nil
	}
	i := slices.IndexFunc(u.list, func(c metadata.ScramCredential) bool { return c.User == user && c.Mechanism == m })
	if i < 0 {
		return nil
	}
	return &u.list[i]
}
