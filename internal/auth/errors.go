package auth

import "errors"

// ErrCredentials means that user and password, or proof, do not belong together, or that there is no such user: nobody is told which.
var ErrCredentials = errors.New("unknown user or wrong password")

// ErrToken means that a bearer token is not valid here.
var ErrToken = errors.New("the token is not valid here")

// ErrMalformed means that a message is none of the mechanism's.
var ErrMalformed = errors.New("malformed authentication message")

// ErrNobody means that there is no proof at all of who sends a request.
var ErrNobody = errors.New("nothing proves who sends it")

// ErrMechanism means that the mechanism is not offered.
var ErrMechanism = errors.New("mechanism not offered")

// ErrExpired means that what a session was opened with holds no longer: the password was changed or removed, or the token or certificate has expired.
var ErrExpired = errors.New("the credentials of the session hold no longer")

// ErrUnavailable means that nobody could be asked in time: the issuer of tokens does not answer, or too many passwords are being checked.
var ErrUnavailable = errors.New("authentication is not available now")
