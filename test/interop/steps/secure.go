package steps

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Secure says that the broker speaks TLS and wants a login by SCRAM-SHA-512.
func Secure() bool { return CAFile() != "" }

// CAFile is the file of the CA whose certificate the broker shows.
func CAFile() string { return os.Getenv("WALK_CA") }

// User is who logs in.
func User() string { return os.Getenv("WALK_USER") }

// Password is that of User.
func Password() string { return os.Getenv("WALK_PASSWORD") }

// TLS is what a client written in Go needs to trust the broker.
func TLS() *tls.Config {
	c, err := Trust(CAFile())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return c
}

// Trust is TLS with the CAs of a file.
func Trust(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}
