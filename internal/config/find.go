package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kafkaPrefix stands before a broker setting in the flat names of strandline.yaml.
const kafkaPrefix = "kafka."

// listenersPrefix stands before "<index>.<key>" of a listener.
const listenersPrefix = "listeners."

var listenerRows = byName(normalize(ScopeNode, listenerTable()))

// ListenerKeys returns the keys of one element of "listeners:", in name order.
func ListenerKeys() []string { return slices.Sorted(maps.Keys(listenerRows)) }

// Find returns the row for a flat name of strandline.yaml: "node.id", "kafka.num.partitions", "listeners.0.address". The error wraps
// ErrUnknown and names the nearest name.
func Find(name string) (*Setting, error) {
	if s := Lookup(ScopeNode, name); s != nil {
		return s, nil
	}
	if rest, ok := strings.CutPrefix(name, kafkaPrefix); ok {
		if s := Lookup(ScopeBroker, rest); s != nil {
			return s, nil
		}
		return nil, &UnknownError{Key: name, Nearest: prefixed(kafkaPrefix, Nearest(ScopeBroker, rest)), Where: ScopeBroker.String()}
	}
	if rest, ok := strings.CutPrefix(name, listenersPrefix); ok {
		index, key, _ := strings.Cut(rest, ".")
		if _, err := strconv.ParseUint(index, 10, 8); err == nil && listenerRows[key] != nil {
			return listenerRows[key], nil
		}
		return nil, &UnknownError{Key: name, Nearest: prefixed(listenersPrefix+index+".", nearestOf(key, slices.Collect(maps.Keys(listenerRows)))), Where: ScopeNode.String()}
	}
	return nil, &UnknownError{Key: name, Nearest: nearestNode(name), Where: ScopeNode.String()}
}

// nearestNode looks among the node settings; for a broker setting that stands outside "kafka:", there; and for a slip in the name of a
// section, in that section.
func nearestNode(name string) string {
	if Lookup(ScopeBroker, name) != nil {
		return kafkaPrefix + name
	}
	if near := Nearest(ScopeNode, name); near != "" {
		return near
	}
	typed, rest, _ := strings.Cut(name, ".")
	section := nearestOf(typed, []string{strings.TrimSuffix(listenersPrefix, "."), strings.TrimSuffix(kafkaPrefix, ".")})
	if section == "" || section == typed {
		return ""
	}
	full := section + "." + rest
	if _, err := Find(full); err == nil {
		return full
	}
	return section
}

func prefixed(prefix, name string) string {
	if name == "" {
		return ""
	}
	return prefix + name
}

// defaultListener is used when no listener is configured.
var defaultListener = Listener{Name: "plain", Address: "127.0.0.1:9092", Advertise: AdvertiseAuto, ClientCert: CertNone}

func listenerKey(i int) string { return listenersPrefix + strconv.Itoa(i) }

// buildListeners collects "listeners.<index>.<key>". Indexes count from 0 without gaps.
func buildListeners(values map[string]string) ([]Listener, error) {
	var out []Listener
	for i := range ListenersMax + 1 {
		prefix := listenersPrefix + strconv.Itoa(i) + "."
		l := Listener{Advertise: AdvertiseAuto, ClientCert: CertNone}
		found := false
		for _, name := range sortedKeys(values) {
			key, ok := strings.CutPrefix(name, prefix)
			if !ok || listenerRows[key] == nil {
				continue
			}
			found = true
			if err := listenerRows[key].Check(values[name]); err != nil {
				err.(*ValueError).Key = name
				return nil, err
			}
			switch key {
			case "name":
				l.Name = values[name]
			case "address":
				l.Address = values[name]
			case "advertise":
				l.Advertise = values[name]
			case "tls":
				l.TLS = values[name] == "true"
			case "mtls":
				l.ClientCert = values[name]
			case "sasl":
				l.SASL = SplitList(values[name])
			}
		}
		if !found {
			break
		}
		if i == ListenersMax {
			return nil, &ValueError{Key: "listeners", Value: strconv.Itoa(i + 1), Why: "are too many", Allowed: "at most " + strconv.Itoa(ListenersMax)}
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		out = []Listener{defaultListener}
	}
	return out, nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
