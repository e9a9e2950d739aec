package storage

import (
	"fmt"
	"strings"
)

// foreignNamed bounds the names that a refusal lists.
const foreignNamed = 3

// refuseForeign refuses a directory without an identity file that holds names which are not ours. Our own names without an identity are
// a first start that was cut short, or data whose identity is lost, which loadIdentity judges.
func (d *Dir) refuseForeign() error {
	list, err := d.fs.ReadDir(d.path)
	if err != nil {
		if isMissing(err) {
			return nil
		}
		return fmt.Errorf("data directory: %w", err)
	}
	var foreign []string
	for _, e := range list {
		if e.Name == identityFile || e.Name == identityCopy {
			return nil
		}
		switch strings.TrimSuffix(e.Name, tempSuffix) {
		case identityFile, identityCopy, lockFile, topicsDir, metadataDir, quarantineDir, startFile, syncPointFile, syncPointCopy, cleanFile, reserveFile:
		case "lost+found": // the root of a file system of its own has it
		default:
			foreign = append(foreign, e.Name)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	named := strings.Join(foreign[:min(len(foreign), foreignNamed)], ", ")
	if more := len(foreign) - foreignNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("data directory %s %w (%s)", d.path, ErrForeign, named)
}
