package certs

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"strandline.dev/internal/sys"
)

const (
	// reloadEvery is how often the files are looked at: a certificate is replaced days before it ends, and three small reads cost nothing.
	reloadEvery = 2 * time.Second
	// fileBytesMax bounds a file with certificates; real ones are a few kilobytes.
	fileBytesMax = 1 << 20
)

// Files are the paths of the PEM files of an identity; CA may be empty.
type Files struct {
	// Setting is what the settings with the paths begin with, for people: "tls.cluster" has tls.cluster.cert, .key and .ca.
	Setting       string
	Cert, Key, CA string
}

// Source holds the newest good Set of an identity.
type Source struct {
	now   atomic.Pointer[Set]
	judge func(*Set) error

	// What follows belongs to whoever reads files: Open, then Watch.
	fsys  sys.FS
	files Files
	// suspect is what was refused at the last look, told whether that has been logged.
	suspect refusal
	told    bool
}

// refusal is what was found when the files were not usable.
type refusal struct {
	pem  PEM
	read string // the error, if they could not be read at all
}

func (r refusal) same(o refusal) bool { return r.read == o.read && r.pem.equal(o.pem) }

// Hold returns a Source of PEM that is not in files. judge refuses what could never work for its user; nil takes all.
func Hold(p PEM, judge func(*Set) error) (*Source, error) {
	s := &Source{judge: judge}
	return s, s.Replace(p)
}

// Open reads files. Its errors name the setting.
func Open(fsys sys.FS, f Files, judge func(*Set) error) (*Source, error) {
	s := &Source{judge: judge, fsys: fsys, files: f}
	p, err := s.read()
	if err != nil {
		return nil, err
	}
	if err := s.Replace(p); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Setting, err)
	}
	return s, nil
}

// Set is the identity for a connection to come.
func (s *Source) Set() *Set { return s.now.Load() }

// Left is how long the certificate is still valid; negative when it has ended.
func (s *Source) Left(now time.Time) time.Duration { return s.Set().Expires.Sub(now) }

// Replace takes new PEM for connections to come. After an error the former identity stays.
func (s *Source) Replace(p PEM) error {
	next, err := Parse(p)
	if err != nil {
		return err
	}
	if s.judge != nil {
		if err := s.judge(next); err != nil {
			return err
		}
	}
	s.now.Store(next)
	return nil
}

// Watch takes up changed files until ctx ends.
func (s *Source) Watch(ctx context.Context, log *slog.Logger) {
	look := time.NewTicker(reloadEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			s.look(log)
		}
	}
}

// look reads the files once. What cannot be used is told when a second look finds the same: files that are being replaced one after the other do
// not fit together for a moment.
func (s *Source) look(log *slog.Logger) {
	p, err := s.read()
	found := refusal{pem: p}
	switch {
	case err != nil:
		found.read = err.Error()
	case p.equal(s.Set().pem):
		s.suspect, s.told = refusal{}, false
		return
	default:
		if err = s.Replace(p); err == nil {
			s.suspect, s.told = refusal{}, false
			log.Info("certificate replaced; connections that are open go on with the former one", "setting", s.files.Setting, "expires", s.Set().Expires)
			return
		}
	}
	if !found.same(s.suspect) {
		s.suspect, s.told = found, false
		return
	}
	if !s.told {
		s.told = true
		log.Warn("certificate files cannot be used; the former certificate stays in use until they are mended", "setting", s.files.Setting,
			"cert", s.files.Cert, "key", s.files.Key, "ca", s.files.CA, "error", err, "expires", s.Set().Expires)
	}
}

// read reads the files.
func (s *Source) read() (PEM, error) {
	var p PEM
	for _, f := range []struct {
		key, path string
		to        *[]byte
	}{{"cert", s.files.Cert, &p.Cert}, {"key", s.files.Key, &p.Key}, {"ca", s.files.CA, &p.CA}} {
		if f.path == "" && f.key == "ca" {
			continue
		}
		var err error
		if *f.to, err = sys.ReadFile(s.fsys, f.path, fileBytesMax); err != nil {
			return PEM{}, fmt.Errorf("%s.%s: %w", s.files.Setting, f.key, err)
		}
	}
	return p, nil
}
