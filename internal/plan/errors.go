package plan

import "errors"

// ErrInputs means that inputs are out of range; the text names the input.
var ErrInputs = errors.New("cannot plan with that")
