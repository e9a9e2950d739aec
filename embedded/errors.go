package embedded

import "errors"

// ErrOptions means that Options ask for what there cannot be. Nothing was started.
var ErrOptions = errors.New("embedded broker: bad options")
