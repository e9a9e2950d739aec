package metadata

import "errors"

// ErrRecord means that a record cannot follow the Image it is applied to, or that bytes are no record of this release. Apply and decoding
// stop: nothing is skipped, because what follows was decided on the state with the record (C080).
var ErrRecord = errors.New("metadata record")

// ErrStale means that an entry is older than the Image (I13).
var ErrStale = errors.New("metadata entry is older than the image")

// ErrMessage means that bytes are no event or reply of this release.
var ErrMessage = errors.New("metadata message")
