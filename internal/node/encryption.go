package node

import (
	"context"

	"strandline.dev/internal/sys/sealed"
)

// openKeyring puts encryption at rest between this node and its disk (R151). Without a keyring too: what is encrypted is then refused by name,
// and not taken for damage.
func (n *Node) openKeyring(context.Context) error {
	fsys, err := sealed.Open(n.o.Machine.FS, n.o.Config.Encryption.Keyring)
	if err != nil {
		return err
	}
	n.o.Machine.FS = fsys
	return nil
}
