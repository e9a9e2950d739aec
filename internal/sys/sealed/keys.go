package sealed

// Keys wraps and unwraps the data keys of files. A keyring file is one (Keyring); a service that holds keys could be another.
type Keys interface {
	// Newest names the key that new files are sealed with.
	Newest() (id string, err error)
	// Wrap encrypts a data key with the key of that name. bound is authenticated with it.
	Wrap(id string, dataKey, bound []byte) ([]byte, error)
	// Unwrap is the reverse. Errors: ErrUnknownKey, ErrWrongKey.
	Unwrap(id string, wrapped, bound []byte) ([]byte, error)
}
