package sealed

import "errors"

var (
	// ErrNoKeys: a file is sealed, and this process has no keyring.
	ErrNoKeys = errors.New("the file is encrypted and no keyring is configured: set encryption.keyring, or --keyring")
	// ErrUnknownKey: a file is sealed with a key that is not in the keyring.
	ErrUnknownKey = errors.New("the keyring lacks the key that the file is encrypted with: put it back into the keyring file")
	// ErrWrongKey: the keyring has another key under the name of the one that the file is sealed with.
	ErrWrongKey = errors.New("the keyring has another key by the name of the one that the file is encrypted with, or the file's header was changed")
	// ErrNoKeyring: the keyring file is not there.
	ErrNoKeyring = errors.New("the keyring file is missing: restore it, or make the first one with `strandline keyring create`")
	// ErrTornKeyring: the keyring file is not whole.
	ErrTornKeyring = errors.New("the keyring file is not whole: restore it from a copy")
)
