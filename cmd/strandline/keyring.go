package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/sealed"
)

func newKeyringCommand(a *app) *cobra.Command {
	return newGroupCommand("keyring", "Make and extend the keyring of encryption at rest",
		`The keyring file that encryption.keyring of a node names. Every node may have one of its own. Whoever has the file and the disk can read
the records: keep it elsewhere, with a copy, because without it nobody can. A key that is added is used for the next files; older files
stay as they are and need the key they were made with.`,
		newKeyringCreateCommand(a), newKeyringAddCommand(a))
}

func newKeyringCreateCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "create FILE NAME",
		Short:   "Make a keyring file with one new key",
		Example: `  strandline keyring create ./keyring 2026-11`,
		Args:    exactArgs("FILE", "NAME"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.keyringAdd(args[0], args[1], true) },
	}
}

func newKeyringAddCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "add FILE NAME",
		Short:   "Add a new key, which nodes use for the next files",
		Example: `  strandline keyring add ./keyring 2027-02`,
		Args:    exactArgs("FILE", "NAME"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.keyringAdd(args[0], args[1], false) },
	}
}

func (a *app) keyringAdd(file, name string, create bool) error {
	if err := sealed.AddKey(sys.Real().FS, file, name, create); err != nil {
		return failf(err, "the keyring was not changed")
	}
	_, err := fmt.Fprintf(a.stdout, "key %s is the newest of %s; keep a copy of the file elsewhere\n", name, file)
	return err
}
