package config

import (
	"strings"
	"testing"
)

// What looks like a protection and is none is refused by name (C108).
func TestC108_AccessThatProtectsNothing(t *testing.T) {
	const plain, tls = "listeners.0.name=a listeners.0.address=127.0.0.1:1 ", "listeners.0.tls=true tls.cert=c tls.key=k "
	for settings, want := range map[string]string{
		plain + "auth.super.users=User:a":                                                 "auth.super.users: value \"User:a\" protects nothing: no listener has sasl or mtls",
		plain + "auth.users.file=u":                                                       "auth.users.file: value \"u\" protects nothing",
		plain + "auth.allow.if.no.acl=true":                                               "auth.allow.if.no.acl: value \"true\" protects nothing",
		plain + "listeners.0.tls=true":                                                    "tls.cert is not set, and a listener has tls",
		plain + "http.tls=true":                                                           "tls.key is not set, and a listener has tls",
		plain + "http.mtls=required":                                                      "asks for certificates without http.tls",
		plain + tls + "http.tls=true http.mtls=required":                                  "tls.ca is not set",
		plain + "listeners.0.mtls=required":                                               "asks for certificates without tls",
		plain + tls + "listeners.0.mtls=required":                                         "tls.ca is not set, and listener a asks",
		plain + "listeners.0.sasl=OAUTHBEARER":                                            "auth.oauth.audience are not both set",
		plain + "listeners.0.sasl=PLAIN auth.super.users=alice":                           "has something that is no principal",
		plain + "listeners.0.sasl=PLAIN auth.super.users=User:a;User:b":                   "",
		plain + tls + "listeners.0.mtls=required tls.ca=a auth.super.users=User:CN=x,O=y": "",
		plain + tls + "listeners.0.sasl=SCRAM-SHA-512,PLAIN auth.users.file=u":            "",
	} {
		values := map[string]string{"node.id": "1"}
		for pair := range strings.FieldsSeq(settings) {
			k, v, _ := strings.Cut(pair, "=")
			values[k] = v
		}
		n, err := Build(values, false)
		if err != nil {
			t.Fatalf("%s: %v", settings, err)
		}
		got := ""
		if err := n.Validate(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\nhave %s\nwant %s", settings, got, want)
		}
	}
	if _, err := Build(map[string]string{"listeners.0.sasl": "GSSAPI"}, false); err == nil {
		t.Error("a mechanism that nobody has is accepted")
	}
}
