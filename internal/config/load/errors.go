package load

import "errors"

// ErrSyntax means that a configuration file is not what can be read; the text names the line.
var ErrSyntax = errors.New("configuration file")
