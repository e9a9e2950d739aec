package storage

import (
	"errors"
	"io/fs"
	"log/slog"
)

// cacheFailures collects the cache files that could not be written, so that the log says each cause once: a full disk fails them all.
type cacheFailures struct{ causes []cacheFailure }

// cacheFailure is one cause: the first error, and how many files it kept from being written.
type cacheFailure struct {
	why   string
	first error
	files int
}

func (c *cacheFailures) add(file string, err error) {
	why := err.Error()
	var at *fs.PathError
	if errors.As(err, &at) {
		why = at.Err.Error() // without the name
	} else {
		err = &fs.PathError{Op: "write", Path: file, Err: err}
	}
	for i := range c.causes {
		if c.causes[i].why == why {
			c.causes[i].files++
			return
		}
	}
	if len(c.causes) < failureCausesMax {
		c.causes = append(c.causes, cacheFailure{why, err, 1})
		return
	}
	c.causes[len(c.causes)-1].files++
}

// tell logs what was collected and begins anew.
func (c *cacheFailures) tell(log *slog.Logger) {
	for _, f := range c.causes {
		log.Warn("cache files could not be written; what is missing is rebuilt at the next start", "files", f.files, "first", f.first.Error())
	}
	c.causes = nil
}
