package auth

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// Authorizer judges what may be done by the ACLs of the newest Image.
type Authorizer struct {
	image   func() *metadata.Image
	options Options
	newest  atomic.Pointer[judged]
}

// judged are the rules of one version of the Image. Both are one value: of two that look at two Images at once, the later may store the older,
// and who comes next must see that.
type judged struct {
	version uint64
	rules   *Rules
}

// NewAuthorizer returns an authorizer of the Images that image returns.
func NewAuthorizer(image func() *metadata.Image, o Options) *Authorizer {
	return &Authorizer{image: image, options: o}
}

// Enforced says that ACLs decide.
func (z *Authorizer) Enforced() bool { return z.options.Enforced }

// Options are what the configuration says. Not to be changed.
func (z *Authorizer) Options() *Options { return &z.options }

// Rules are those of the newest Image. They are compiled when the ACLs have changed, not with every Image.
func (z *Authorizer) Rules() *Rules {
	img, j := z.image(), z.newest.Load()
	switch {
	case j == nil || !j.rules.image.SameACLs(img):
		j = &judged{img.Version(), Compile(img, &z.options)}
	case j.version == img.Version():
		return j.rules
	default:
		j = &judged{img.Version(), j.rules}
	}
	z.newest.Store(j)
	return j.rules
}

// Grants are the decisions about one principal at one host, remembered for as long as the ACLs do not change: the cost on the road of every
// request is a look into a small map.
type Grants struct {
	z    *Authorizer
	who  kafka.Principal
	host string

	mu struct { // a leaf
		sync.Mutex
		rules   *Rules
		allowed map[Action]bool
	}
}

// Grants begins to decide about a principal.
func (z *Authorizer) Grants(who kafka.Principal, host string) *Grants {
	return &Grants{z: z, who: who, host: host}
}

// Principal is who it is about.
func (g *Grants) Principal() kafka.Principal { return g.who }

// May says whether an action is allowed.
func (g *Grants) May(act Action) bool {
	if !g.z.options.Enforced {
		return true
	}
	rules := g.z.Rules()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.rules != rules || len(g.mu.allowed) >= grantsMax {
		g.mu.rules, g.mu.allowed = rules, map[Action]bool{}
	}
	yes, known := g.mu.allowed[act]
	if !known {
		yes = rules.Decide(g.who, g.host, act).Allowed
		g.mu.allowed[act] = yes
	}
	return yes
}

// MayAny says whether an operation is allowed on at least one resource of a type.
func (g *Grants) MayAny(op kmsg.ACLOperation, resource kmsg.ACLResourceType) bool {
	return g.z.Rules().DecideAny(g.who, g.host, op, resource)
}

// Reader names a principal at a host in one text, for Sees, as long as rules decide; "" where everybody may do everything.
func (z *Authorizer) Reader(who kafka.Principal, host string) string {
	if !z.options.Enforced {
		return ""
	}
	return who.String() + "\x00" + host
}

// Sees says whether who Reader has named may see a topic by the newest rules.
func (z *Authorizer) Sees(reader, topic string) bool {
	if !z.options.Enforced {
		return true
	}
	principal, host, _ := strings.Cut(reader, "\x00")
	kind, name, ok := strings.Cut(principal, ":")
	who := kafka.Principal{Type: kind, Name: name}
	act := Action{Operation: kmsg.ACLOperationDescribe, Resource: kmsg.ACLResourceTypeTopic, Name: topic}
	return ok && z.Rules().Decide(who, host, act).Allowed
}

// Explain judges an action and says why.
func (g *Grants) Explain(act Action) Verdict { return g.z.Rules().Decide(g.who, g.host, act) }
