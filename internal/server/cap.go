package server

import (
	"slices"

	"strandline.dev/internal/config"
	"strandline.dev/internal/wire"
)

// capped returns the rows that a broker of the release named by strandline.protocol.cap would serve. A release that wire does not know
// cannot be configured: a test holds the setting's values against wire's.
func capped(rows []wire.API, release string) []wire.API {
	if release == config.NoProtocolCap {
		return rows
	}
	out, err := wire.Cap(rows, release)
	if err != nil {
		return rows
	}
	return out
}

// api returns the row of a key as this server serves it; false when it does not.
func (s *Server) api(key int16) (wire.API, bool) {
	i, found := slices.BinarySearchFunc(s.apis, key, func(a wire.API, k int16) int { return int(a.Key) - int(k) })
	if !found {
		return wire.API{}, false
	}
	return s.apis[i], true
}

// admits judges a version that the table knows by what this server serves of the table: only what has a handler, and with a cap only what
// that release knows. Versions below the minimum pass: they are refused in their own layout. Errors: wire.ErrUnknownKey,
// wire.ErrVersionTooNew.
func (s *Server) admits(key, version int16) error {
	switch a, ok := s.api(key); {
	case !ok:
		return wire.ErrUnknownKey
	case version > a.Max:
		return wire.ErrVersionTooNew
	}
	return nil
}
