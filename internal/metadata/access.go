package metadata

import (
	"bytes"
	"cmp"
	"iter"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ACL is one rule of access: Kafka's model, with Kafka's numbers.
type ACL struct {
	Resource kmsg.ACLResourceType
	Pattern  kmsg.ACLResourcePatternType // literal or prefixed
	// Name is the resource's name, a prefix of it, or, as a literal, AnyName.
	Name string
	// Principal is "Type:Name", or AnyPrincipal.
	Principal string
	// Host is an address, or AnyHost.
	Host       string
	Operation  kmsg.ACLOperation
	Permission kmsg.ACLPermissionType
}

// What stands for all names, principals and hosts, and the one name that the cluster has as a resource.
const (
	AnyName      = "*"
	AnyPrincipal = "User:*"
	AnyHost      = "*"
	ClusterName  = "kafka-cluster"
)

// ScramMechanism is a SCRAM mechanism by Kafka's number.
type ScramMechanism int8

// The mechanisms.
const (
	ScramSHA256 ScramMechanism = 1
	ScramSHA512 ScramMechanism = 2
)

// keyBytes is the length of the mechanism's keys, 0 for one that is unknown.
func (m ScramMechanism) keyBytes() int {
	switch m {
	case ScramSHA256:
		return 32
	case ScramSHA512:
		return 64
	}
	return 0
}

// String returns the mechanism's name in SASL.
func (m ScramMechanism) String() string {
	switch m {
	case ScramSHA256:
		return "SCRAM-SHA-256"
	case ScramSHA512:
		return "SCRAM-SHA-512"
	}
	return "unknown"
}

// ScramCredential proves that somebody knows a user's password; the password is not in it. It is immutable.
type ScramCredential struct {
	User       string
	Mechanism  ScramMechanism
	Iterations int32
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
}

type scramKey struct {
	user      string
	mechanism ScramMechanism
}

// access is who may come in and who may do what.
type access struct {
	acls   table[ACL, struct{}]
	scram  table[scramKey, *ScramCredential]
	secret []byte
}

func emptyAccess() access {
	return access{
		acls:  table[ACL, struct{}]{compare: CompareACLs},
		scram: table[scramKey, *ScramCredential]{compare: compareScram},
	}
}

// CompareACLs orders ACLs: by resource, pattern and name first.
func CompareACLs(a, b ACL) int {
	return cmp.Or(
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Pattern, b.Pattern), strings.Compare(a.Name, b.Name), strings.Compare(a.Principal, b.Principal),
		strings.Compare(a.Host, b.Host), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Permission, b.Permission),
	)
}

func compareScram(a, b scramKey) int {
	return cmp.Or(strings.Compare(a.user, b.user), cmp.Compare(a.mechanism, b.mechanism))
}

// ACLs yields the rules of access in their order.
func (i *Image) ACLs() iter.Seq[ACL] {
	return func(yield func(ACL) bool) {
		for a := range i.access.acls.all() {
			if !yield(a) {
				return
			}
		}
	}
}

// ACLCount counts the rules of access.
func (i *Image) ACLCount() int { return i.access.acls.size }

// SameACLs says that two Images share their rules of access. It is cheap; false may also mean that equal rules were written anew.
func (i *Image) SameACLs(other *Image) bool { return i.access.acls.same(&other.access.acls) }

// OnlyACLs returns an Image with these rules of access and nothing else, for those who keep it longer than the Image: it keeps no topic alive.
func (i *Image) OnlyACLs() *Image {
	only := Empty()
	only.version, only.access.acls = i.version, i.access.acls
	return only
}

// Scram returns a user's credential, or nil.
func (i *Image) Scram(user string, m ScramMechanism) *ScramCredential {
	c, _ := i.access.scram.get(scramKey{user, m})
	return c
}

// Scrams yields the credentials by user and mechanism.
func (i *Image) Scrams() iter.Seq[*ScramCredential] { return values(i.access.scram) }

// ScramSecret is random and the same on every node: what is answered about users that do not exist is made of it, so that they cannot be told
// from others. It is nil before there is a user. Not to be changed or shown.
func (i *Image) ScramSecret() []byte { return i.access.secret }

// ACLRecord adds or removes a rule of access.
type ACLRecord struct {
	ACL     ACL
	Removed bool
}

// ScramRecord sets or removes a credential; of a removed one only user and mechanism are set.
type ScramRecord struct {
	Credential ScramCredential
	Removed    bool
}

// ScramSecretRecord sets ScramSecret.
type ScramSecretRecord struct {
	Secret []byte
}

func (ACLRecord) recordType() uint8         { return 11 }
func (ScramRecord) recordType() uint8       { return 12 }
func (ScramSecretRecord) recordType() uint8 { return 13 }

func (d *draft) applyACL(r ACLRecord) error {
	if _, there := d.access.acls.get(r.ACL); there != r.Removed {
		return bad("ACL %+v: removed %v", r.ACL, r.Removed)
	}
	if r.Removed {
		d.access.acls.remove(d.own, r.ACL)
		return nil
	}
	d.access.acls.set(d.own, r.ACL, struct{}{})
	return nil
}

func (d *draft) applyScram(r ScramRecord) error {
	c := r.Credential
	k := scramKey{c.User, c.Mechanism}
	if c.User == "" || c.Mechanism.keyBytes() == 0 {
		return bad("credential of user %q for mechanism %d", c.User, c.Mechanism)
	}
	if !r.Removed {
		d.access.scram.set(d.own, k, &c)
		return nil
	}
	if _, there := d.access.scram.get(k); !there {
		return bad("user %q has no credential for %v", c.User, c.Mechanism)
	}
	d.access.scram.remove(d.own, k)
	return nil
}

func (d *draft) applyScramSecret(r ScramSecretRecord) error {
	if len(r.Secret) < scramSecretMin || d.access.secret != nil && !bytes.Equal(d.access.secret, r.Secret) {
		return bad("a secret of %d bytes", len(r.Secret)) // another one would show who existed before
	}
	d.access.secret = r.Secret
	return nil
}

// records is the shortest list of records that leads to this access.
func (a *access) records(rs []Record) []Record {
	if a.secret != nil {
		rs = append(rs, ScramSecretRecord{a.secret})
	}
	for _, c := range a.scram.all() {
		rs = append(rs, ScramRecord{Credential: *c})
	}
	for acl := range a.acls.all() {
		rs = append(rs, ACLRecord{ACL: acl})
	}
	return rs
}
