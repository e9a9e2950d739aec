package auth

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// word turns ALTER_CONFIGS into AlterConfigs, as Kafka's documentation and tools write operations and resources.
func word(upper string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.ToLower(upper), "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// RuleText is an ACL in words: "Allow User:a from host * Read on prefixed Topic ord".
func RuleText(a metadata.ACL) string {
	return fmt.Sprintf("%s %s from host %s %s on %s %s %s", word(a.Permission.String()), a.Principal, a.Host, word(a.Operation.String()),
		strings.ToLower(a.Pattern.String()), word(a.Resource.String()), a.Name)
}

// Kafka's names of the settings that decide beside the ACLs.
const (
	KafkaSupers      = "super.users"
	KafkaAllowIfNone = "allow.everyone.if.no.acl.found"
)

// SuperText is a list of super users as configurations write it, and config.Node.Supers reads it.
func SuperText(supers []kafka.Principal) string {
	var all []string
	for _, p := range supers {
		all = append(all, p.String())
	}
	return strings.Join(all, ";")
}

// Idle says why a rule can match nothing that exists by Kafka's naming rules, or "": a prefix is not a wildcard.
func Idle(a metadata.ACL) string {
	switch {
	case a.Name == metadata.AnyName && a.Pattern == kmsg.ACLResourcePatternTypePrefixed:
		return "the prefix * matches only names that begin with a star, and there are none; the literal * stands for all names"
	case a.Name != metadata.AnyName && strings.HasSuffix(a.Name, "*"):
		return fmt.Sprintf("%s is taken as it stands: a star at the end is no wildcard; use the prefixed pattern %s", a.Name, strings.TrimRight(a.Name, "*"))
	case strings.HasPrefix(a.Principal, "User:") && a.Principal != metadata.AnyPrincipal && strings.Contains(a.Principal, "*"):
		return fmt.Sprintf("the principal %s is taken as it stands: only User:* stands for everybody", a.Principal)
	}
	return ""
}
