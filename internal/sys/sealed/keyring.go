package sealed

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"strandline.dev/internal/sys"
)

// keyBytes is the size of every key here: AES-256.
const keyBytes = 32

// keyringTitle is the first line of a keyring file.
const keyringTitle = "strandline keyring 1"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// namedKey is one key of a keyring.
type namedKey struct {
	id  string
	key []byte
}

// Keyring is Keys from a file: a title, one line for each key ("name base64"), oldest first, and a last line with the number of keys and
// a checksum, so that a torn file is known for one.
type Keyring struct {
	fs   sys.FS
	path string

	mu struct {
		sync.Mutex
		text []byte // as last read
		keys []namedKey
	}
}

// OpenKeyring reads a keyring file. Errors: ErrNoKeyring, ErrTornKeyring, and those of the file system.
func OpenKeyring(fsys sys.FS, path string) (*Keyring, error) {
	k := &Keyring{fs: fsys, path: path}
	if err := k.reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// reload reads the file again if it has changed.
func (k *Keyring) reload() error {
	text, err := sys.ReadFile(k.fs, k.path, keyringMax)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", k.path, ErrNoKeyring)
	}
	if err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.mu.keys) > 0 && bytes.Equal(text, k.mu.text) {
		return nil
	}
	keys, err := parseKeyring(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", k.path, err)
	}
	k.mu.text, k.mu.keys = text, keys
	return nil
}

// Newest names the last key of the file as it is now: a key that was added is used by the next file. If the file cannot be read any more,
// the error says so and nothing is sealed with a key that may be gone.
func (k *Keyring) Newest() (string, error) {
	if err := k.reload(); err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.keys[len(k.mu.keys)-1].id, nil
}

// Wrap implements Keys.
func (k *Keyring) Wrap(id string, dataKey, bound []byte) ([]byte, error) {
	a, err := k.find(id)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, a.NonceSize(), a.NonceSize()+len(dataKey)+a.Overhead())
	rand.Read(nonce)
	return a.Seal(nonce, nonce, dataKey, bound), nil
}

// Unwrap implements Keys.
func (k *Keyring) Unwrap(id string, wrapped, bound []byte) ([]byte, error) {
	a, err := k.find(id)
	if errors.Is(err, ErrUnknownKey) && k.reload() == nil {
		a, err = k.find(id) // another node may have begun to use a newer file
	}
	if err != nil {
		return nil, err
	}
	if len(wrapped) < a.NonceSize() {
		return nil, fmt.Errorf("key %q: %w", id, ErrWrongKey)
	}
	dataKey, err := a.Open(nil, wrapped[:a.NonceSize()], wrapped[a.NonceSize():], bound)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", id, ErrWrongKey)
	}
	return dataKey, nil
}

func (k *Keyring) find(id string) (cipher.AEAD, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.mu.keys {
		if n.id == id {
			return newAEAD(n.key)
		}
	}
	return nil, fmt.Errorf("key %q: %w", id, ErrUnknownKey)
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// parseKeyring reads the text of a keyring file.
func parseKeyring(text string) ([]namedKey, error) {
	body, last, ok := cutLastLine(text)
	if !ok || last != endLine(body) || !strings.HasPrefix(body, keyringTitle+"\n") {
		return nil, ErrTornKeyring
	}
	var keys []namedKey
	known := map[string]bool{}
	for line := range strings.Lines(body[len(keyringTitle)+1:]) {
		id, secret, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		key, err := base64.StdEncoding.DecodeString(secret)
		if !ok || err != nil || len(key) != keyBytes || known[id] || checkKeyID(id) != nil {
			return nil, ErrTornKeyring
		}
		known[id] = true
		keys = append(keys, namedKey{id, key})
	}
	if len(keys) == 0 || len(keys) > keysMax {
		return nil, ErrTornKeyring
	}
	return keys, nil
}

// cutLastLine splits off the last line; false if the text does not end with one.
func cutLastLine(text string) (body, last string, ok bool) {
	rest, ok := strings.CutSuffix(text, "\n")
	if i := strings.LastIndexByte(rest, '\n'); ok && i >= 0 {
		return text[:i+1], rest[i+1:], true
	}
	return "", "", false
}

func endLine(body string) string {
	return "end " + strconv.Itoa(strings.Count(body, "\n")-1) + " " + fmt.Sprintf("%08x", crc32.Checksum([]byte(body), castagnoli))
}

// checkKeyID says what is wrong with a key's name.
func checkKeyID(id string) error {
	if id == "" || len(id) > keyIDMax {
		return fmt.Errorf("a key's name has 1 to %d characters", keyIDMax)
	}
	for _, r := range id {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.') {
			return errors.New("a key's name has small letters, digits, dots and hyphens")
		}
	}
	return nil
}

// AddKey makes a random key of this name the newest one of the keyring file, which it creates if create is set and there is none. The
// file is replaced in one step.
func AddKey(fsys sys.FS, path, id string, create bool) error {
	if err := checkKeyID(id); err != nil {
		return err
	}
	text, err := sys.ReadFile(fsys, path, keyringMax)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case create && err == nil:
		return fmt.Errorf("%s exists already", path)
	case create && missing:
		text = nil
	case missing:
		return fmt.Errorf("%s: %w", path, ErrNoKeyring)
	case err != nil:
		return err
	}
	body := keyringTitle + "\n"
	if !create {
		keys, err := parseKeyring(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, k := range keys {
			if k.id == id {
				return fmt.Errorf("%s has a key %q already", path, id)
			}
		}
		body, _, _ = cutLastLine(string(text))
	}
	key := make([]byte, keyBytes)
	rand.Read(key)
	body += id + " " + base64.StdEncoding.EncodeToString(key) + "\n"
	return sys.WriteFileAtomic(fsys, path, []byte(body+endLine(body)+"\n"))
}
