package certs_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// disk is an identity in files.
type disk struct {
	t   *testing.T
	fs  *systest.FS
	log bytes.Buffer
	*certs.Source
}

func files() certs.Files {
	return certs.Files{Setting: "tls.cluster", Cert: "/pem/cert", Key: "/pem/key", CA: "/pem/ca"}
}

func (d *disk) write(name string, data []byte) {
	d.t.Helper()
	if err := sys.WriteFileAtomic(d.fs, "/pem/"+name, data); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) writeAll(p certs.PEM) {
	d.write("cert", p.Cert)
	d.write("key", p.Key)
	d.write("ca", p.CA)
}

// linesInBubble are the lines logged so far, after some looks at the files.
func (d *disk) linesInBubble() string {
	time.Sleep(time.Minute)
	synctest.Wait()
	return d.log.String()
}

// watchedBubble runs a test with an identity whose files are watched.
func watchedBubble(t *testing.T, p func(*certstest.Authority) certs.PEM, judge func(*certs.Set) error, test func(ca *certstest.Authority, d *disk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ca := certstest.NewAuthority(t, "ca")
		d := &disk{t: t, fs: systest.NewFS(1)}
		if err := d.fs.MkdirAll("/pem", 0o700); err != nil {
			t.Fatal(err)
		}
		d.writeAll(p(ca))
		var err error
		if d.Source, err = certs.Open(d.fs, files(), judge); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.Watch(ctx, slog.New(slog.NewTextHandler(&d.log, nil)))
		}()
		test(ca, d)
		cancel()
		<-ended
	})
}

func plain(ca *certstest.Authority) certs.PEM { return ca.Issue(certstest.Wanted{Name: "first"}) }

// TestGoodFilesAreTakenUp: new files are used within seconds and said once; unchanged ones are silent.
func TestGoodFilesAreTakenUp(t *testing.T) {
	watchedBubble(t, plain, nil, func(ca *certstest.Authority, d *disk) {
		if got := d.linesInBubble(); got != "" {
			t.Errorf("nothing has changed, and it says %s", got)
		}
		until := time.Now().Add(20 * time.Hour).Truncate(time.Second)
		d.writeAll(ca.Issue(certstest.Wanted{Name: "second", Until: until}))
		if got := d.linesInBubble(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "certificate replaced") {
			t.Errorf("lines %s", got)
		}
		if got := d.Set().Own.Leaf.Subject.CommonName; got != "second" {
			t.Errorf("%s is in use", got)
		}
		if got, want := d.Left(time.Now()), time.Until(until); got != want {
			t.Errorf("%v left, want %v", got, want)
		}
		if got := d.Left(until.Add(time.Hour)); got != -time.Hour {
			t.Errorf("%v left an hour after its end", got)
		}
	})
}

// TestBadFilesAreRefused: whatever is wrong with the files, the former identity stays, one line says so, and good files are taken up later.
func TestBadFilesAreRefused(t *testing.T) {
	judge := func(s *certs.Set) error {
		if err := s.CheckOwn(); err != nil {
			return err
		}
		if s.Own.Leaf.Subject.CommonName == "wrong" {
			return errors.New("refused by its judge")
		}
		return nil
	}
	for _, c := range []struct {
		name string
		do   func(ca *certstest.Authority, d *disk)
		want string
	}{
		{"empty", func(_ *certstest.Authority, d *disk) { d.write("cert", nil) }, "certificate and key"},
		{"half a key", func(ca *certstest.Authority, d *disk) {
			p := ca.Issue(certstest.Wanted{Name: "x"})
			d.write("cert", p.Cert)
			d.write("key", p.Key[:len(p.Key)/2])
		}, "certificate and key"},
		{"another's key", func(ca *certstest.Authority, d *disk) { d.write("key", ca.Issue(certstest.Wanted{}).Key) }, "certificate and key"},
		{"no CA", func(_ *certstest.Authority, d *disk) { d.write("ca", []byte("x")) }, "CA: no certificate"},
		{"no file", func(_ *certstest.Authority, d *disk) {
			if err := d.fs.Remove("/pem/key"); err != nil {
				d.t.Fatal(err)
			}
		}, "tls.cluster.key"},
		{"too large", func(_ *certstest.Authority, d *disk) { d.write("ca", make([]byte, 2<<20)) }, "tls.cluster.ca"},
		{"its judge", func(ca *certstest.Authority, d *disk) { d.writeAll(ca.Issue(certstest.Wanted{Name: "wrong"})) }, "refused by its judge"},
		{"a huge key", func(ca *certstest.Authority, d *disk) {
			huge := ca.Wrong(certstest.Wanted{Name: "x"})["with an RSA key of 16384 bits"]
			d.write("cert", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: huge.Certificate[0]}))
		}, "an RSA key of 16384 bits; clients refuse those of more than 8192"},
		{"an old one", func(ca *certstest.Authority, d *disk) {
			d.writeAll(ca.Issue(certstest.Wanted{From: time.Now().Add(-9 * time.Hour), Until: time.Now().Add(-time.Hour)}))
		}, "expired"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			watchedBubble(t, plain, judge, func(ca *certstest.Authority, d *disk) {
				c.do(ca, d)
				if got := d.linesInBubble(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "cannot be used") || !strings.Contains(got, c.want) {
					t.Errorf("want one line with %q, have %s", c.want, got)
				}
				if got := d.Set().Own.Leaf.Subject.CommonName; got != "first" {
					t.Errorf("%q is in use", got)
				}
				d.log.Reset()
				d.writeAll(ca.Issue(certstest.Wanted{Name: "second"}))
				if got := d.linesInBubble(); strings.Count(got, "\n") != 1 || d.Set().Own.Leaf.Subject.CommonName != "second" {
					t.Errorf("after good files %q is in use, and the log says %s", d.Set().Own.Leaf.Subject.CommonName, got)
				}
			})
		})
	}
}

// TestFilesReplacedOneByOne: files that do not fit together for a moment are no fault.
func TestFilesReplacedOneByOne(t *testing.T) {
	watchedBubble(t, plain, nil, func(ca *certstest.Authority, d *disk) {
		p := ca.Issue(certstest.Wanted{Name: "second"})
		d.write("cert", p.Cert)
		time.Sleep(2500 * time.Millisecond) // one look
		d.write("key", p.Key)
		if got := d.linesInBubble(); strings.Contains(got, "cannot be used") || d.Set().Own.Leaf.Subject.CommonName != "second" {
			t.Errorf("%q is in use, and the log says %s", d.Set().Own.Leaf.Subject.CommonName, got)
		}
	})
}

// TestOpenNamesTheSetting: a start with bad files says which.
func TestOpenNamesTheSetting(t *testing.T) {
	_, err := certs.Open(systest.NewFS(1), files(), nil)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "tls.cluster.cert") {
		t.Errorf("%v", err)
	}
}
