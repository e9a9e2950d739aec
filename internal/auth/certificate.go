package auth

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"strandline.dev/internal/kafka"
)

// NameRules turn the name in a client's certificate into a principal: Kafka's ssl.principal.mapping.rules.
type NameRules struct{ list []nameRule }

type nameRule struct {
	pattern     *regexp.Regexp // nil: DEFAULT, the name as it is
	replacement string
	change      string // "", L or U
}

// ParseNameRules reads rules such as "RULE:^CN=([^,]+).*$/$1/L,DEFAULT"; the first one that matches decides. A slash in a pattern is written \/.
func ParseNameRules(text string) (*NameRules, error) {
	r := &NameRules{}
	for rest := strings.TrimSpace(text); rest != ""; {
		var one nameRule
		var err error
		if after, isDefault := strings.CutPrefix(rest, "DEFAULT"); isDefault {
			rest = after
		} else if one, rest, err = parseNameRule(rest); err != nil {
			return nil, err
		}
		if len(r.list) == rulesMax {
			return nil, fmt.Errorf("more than %d rules", rulesMax)
		}
		r.list = append(r.list, one)
		rest = strings.TrimSpace(rest)
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil, fmt.Errorf("a comma is missing before %.40q", rest)
		}
		rest = strings.TrimSpace(rest[1:])
	}
	if len(r.list) == 0 {
		return nil, errors.New("no rule; DEFAULT takes the name as it is")
	}
	return r, nil
}

var group = regexp.MustCompile(`\$(\d)`)

// parseNameRule reads "RULE:pattern/replacement/[LU]" from the front of text.
func parseNameRule(text string) (nameRule, string, error) {
	body, ok := strings.CutPrefix(text, "RULE:")
	pattern, body, ok2 := cutSlash(body)
	replacement, rest, ok3 := cutSlash(body)
	if !ok || !ok2 || !ok3 {
		return nameRule{}, "", fmt.Errorf("%.60q is not RULE:pattern/replacement/ with L, U or nothing behind it, nor DEFAULT", text)
	}
	re, err := regexp.Compile(`^(?:` + pattern + `)$`)
	if err != nil {
		return nameRule{}, "", err
	}
	one := nameRule{pattern: re, replacement: group.ReplaceAllString(replacement, "$${$1}")}
	for _, change := range []string{"L", "U"} {
		if after, found := strings.CutPrefix(rest, change); found {
			one.change, rest = change, after
			break
		}
	}
	return one, rest, nil
}

// cutSlash cuts at the first slash without a backslash before it.
func cutSlash(s string) (before, after string, ok bool) {
	for i := range len(s) {
		if s[i] == '/' && (i == 0 || s[i-1] != '\\') {
			return strings.ReplaceAll(s[:i], `\/`, "/"), s[i+1:], true
		}
	}
	return "", "", false
}

// Identify is the identity of a client by its certificate, which has been verified.
func (r *NameRules) Identify(cert *x509.Certificate) (*Identity, error) {
	dn := subjectOf(cert)
	for _, one := range r.list {
		name := dn
		if one.pattern != nil {
			at := one.pattern.FindStringSubmatchIndex(dn)
			if at == nil {
				continue
			}
			name = string(one.pattern.ExpandString(nil, one.replacement, dn, at))
		}
		switch one.change {
		case "L":
			name = strings.ToLower(name)
		case "U":
			name = strings.ToUpper(name)
		}
		if name == "" || len(name) > nameMax {
			return nil, fmt.Errorf("%w: the certificate's name %.100q makes no principal", ErrCredentials, dn)
		}
		return &Identity{Principal: kafka.Principal{Type: "User", Name: name}, Mechanism: "TLS", Expires: cert.NotAfter}, nil
	}
	return nil, fmt.Errorf("%w: no rule of tls.principal.rules matches the certificate's name %.100q", ErrCredentials, dn)
}

// subjectOf is the name in a certificate as RFC 2253 writes it. Of several common names the standard library keeps the last one alone, so that
// CN=admin,CN=guests and CN=admin would be the same; such a name is written whole, the part that was encoded last first.
func subjectOf(cert *x509.Certificate) string {
	var whole pkix.RDNSequence
	if rest, err := asn1.Unmarshal(cert.RawSubject, &whole); err != nil || len(rest) > 0 {
		return cert.Subject.String()
	}
	seen := map[string]bool{}
	for _, set := range whole {
		for _, part := range set {
			kind := part.Type.String()
			if isSingle[kind] && seen[kind] {
				return whole.String()
			}
			seen[kind] = true
		}
	}
	return cert.Subject.String()
}

// isSingle are the parts of which pkix.Name keeps one: common name and serial number.
var isSingle = map[string]bool{"2.5.4.3": true, "2.5.4.5": true}
