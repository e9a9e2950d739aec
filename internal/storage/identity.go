package storage

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	identityFile = "meta.json"
	// identityCopy holds the same bytes: identity can be rebuilt from nothing else, and one damaged file must not stop a node.
	identityCopy = "meta.copy.json"
	// formatVersion is the version of the directory's layout.
	formatVersion = 1
)

// identityJSON is the content of meta.json. Checksum is CRC32C, in hex, of the same JSON with an empty checksum.
type identityJSON struct {
	Format      int    `json:"format"`
	ClusterID   string `json:"cluster_id"`
	NodeID      int32  `json:"node_id"`
	DirectoryID string `json:"directory_id"`
	Checksum    string `json:"checksum"`
}

func (j identityJSON) sum() string {
	j.Checksum = ""
	b, _ := json.Marshal(j) // a struct of strings and integers always marshals
	return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli))
}

func encodeIdentity(id Identity) []byte {
	j := identityJSON{Format: id.FormatVersion, ClusterID: id.ClusterID, NodeID: int32(id.NodeID), DirectoryID: id.DirectoryID.Hex()}
	j.Checksum = j.sum()
	b, _ := json.MarshalIndent(j, "", "  ")
	return append(b, '\n')
}

func decodeIdentity(b []byte) (Identity, error) {
	var j identityJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return Identity{}, err
	}
	if j.Checksum != j.sum() {
		return Identity{}, fmt.Errorf("checksum %q, want %q", j.Checksum, j.sum())
	}
	if j.Format < 1 || j.Format > formatVersion {
		return Identity{}, fmt.Errorf("format version %d, this program knows 1 to %d", j.Format, formatVersion)
	}
	if len(j.ClusterID) > clusterIDMax {
		return Identity{}, fmt.Errorf("cluster id of %d bytes", len(j.ClusterID))
	}
	id, err := kafka.ParseIDHex(j.DirectoryID)
	if err != nil {
		return Identity{}, err
	}
	if id.IsZero() {
		return Identity{}, errors.New("directory id is zero")
	}
	return Identity{ClusterID: j.ClusterID, NodeID: kafka.NodeID(j.NodeID), DirectoryID: id, FormatVersion: j.Format}, nil
}

// loadIdentity reads who the directory belongs to. An empty directory gets a new directory id, synced before anyone hears of
// it; minted says so. A damaged meta.json is restored from its copy and the reverse. With both lost a directory that holds data
// is refused: a guessed identity could make an old replica pass for another one (I4).
func (d *Dir) loadIdentity() (minted bool, err error) {
	main, mainErr := d.readIdentity(identityFile)
	other, otherErr := d.readIdentity(identityCopy)
	switch {
	case mainErr == nil:
		d.mu.identity = main
		if otherErr != nil || other != main {
			return false, d.writeIdentity(main, identityCopy)
		}
		return false, nil
	case otherErr == nil:
		d.log.Warn("meta.json could not be read and was restored from its copy", "dir", d.path, "error", mainErr)
		d.mu.identity = other
		return false, d.writeIdentity(other, identityFile)
	}
	holds, err := d.holdsData()
	if err != nil {
		return false, err
	}
	if holds {
		return false, fmt.Errorf("%w: %s: %w", ErrIdentityLost, filepath.Join(d.path, identityFile), mainErr)
	}
	id := Identity{NodeID: kafka.NoNode, FormatVersion: formatVersion}
	if _, err := rand.Read(id.DirectoryID[:]); err != nil {
		return false, err
	}
	d.mu.identity = id
	return true, errors.Join(d.writeIdentity(id, identityFile), d.writeIdentity(id, identityCopy))
}

func (d *Dir) readIdentity(name string) (Identity, error) {
	b, err := sys.ReadFile(d.fs, filepath.Join(d.path, name), stateFileMax)
	if err != nil {
		return Identity{}, err
	}
	return decodeIdentity(b)
}

func (d *Dir) writeIdentity(id Identity, name string) error {
	return sys.WriteFileAtomic(d.fs, filepath.Join(d.path, name), encodeIdentity(id))
}

func (d *Dir) holdsData() (bool, error) { return HoldsData(d.fs, d.path) }

// HoldsData says whether there is anything in a directory that an identity would be needed for: a node has kept something there. The directory
// need not exist.
func HoldsData(files sys.FS, path string) (bool, error) {
	for _, name := range []string{topicsDir, metadataDir, quarantineDir} {
		list, err := files.ReadDir(filepath.Join(path, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if len(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// Identity says whose directory this is.
func (d *Dir) Identity() Identity {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.identity
}

// SetIdentity binds the directory to a cluster and a node, once; it is synced when SetIdentity returns. Other values later are
// ErrWrongIdentity naming both.
func (d *Dir) SetIdentity(clusterID string, node kafka.NodeID) error {
	if clusterID == "" || len(clusterID) > clusterIDMax || node < 0 {
		return fmt.Errorf("cluster id %q, node %d: not an identity", clusterID, node)
	}
	id := d.Identity()
	if id.ClusterID != "" {
		if id.ClusterID == clusterID && id.NodeID == node {
			return nil
		}
		return fmt.Errorf("%w: %s belongs to node %d of cluster %s, not to node %d of cluster %s",
			ErrWrongIdentity, d.path, id.NodeID, id.ClusterID, node, clusterID)
	}
	id.ClusterID, id.NodeID = clusterID, node
	if err := errors.Join(d.writeIdentity(id, identityFile), d.writeIdentity(id, identityCopy)); err != nil {
		return err
	}
	d.mu.Lock()
	d.mu.identity = id
	d.mu.Unlock()
	return nil
}
