package load

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ParseYAML reads a configuration file into flat keys: nested maps are joined by dots, a list of scalars becomes a comma-separated text, and
// the elements of a list of maps are numbered ("listeners.0.name"). It knows no setting. Errors wrap ErrSyntax.
func ParseYAML(b []byte) (map[string]string, error) {
	values, _, err := parse(b)
	return values, err
}

// parse also gives the line of each key.
func parse(b []byte) (map[string]string, map[string]int, error) {
	if len(b) > fileBytesMax {
		return nil, nil, fmt.Errorf("%w has %d bytes; the limit is %d", ErrSyntax, len(b), fileBytesMax)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	f := flattener{values: map[string]string{}, lines: map[string]int{}}
	if root.Kind == 0 || len(root.Content) == 0 {
		return f.values, f.lines, nil
	}
	top := root.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return f.values, f.lines, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, nil, fmt.Errorf("%w, line %d: want keys and values", ErrSyntax, top.Line)
	}
	if err := f.mapping("", top, 0); err != nil {
		return nil, nil, err
	}
	return f.values, f.lines, nil
}

type flattener struct {
	values map[string]string
	lines  map[string]int
}

func (f *flattener) node(name string, n *yaml.Node, depth int) error {
	switch {
	case depth > depthMax:
		return fmt.Errorf("%w, line %d: nested deeper than %d", ErrSyntax, n.Line, depthMax)
	case n.Kind == yaml.MappingNode:
		return f.mapping(name, n, depth)
	case n.Kind == yaml.SequenceNode:
		return f.sequence(name, n, depth)
	case n.Kind == yaml.ScalarNode:
		return f.scalar(name, n)
	}
	// Aliases are refused: they make a small file expand without bound, and a list of settings needs none.
	return fmt.Errorf("%w, line %d: %s: want a value, a list or keys", ErrSyntax, n.Line, name)
}

func (f *flattener) mapping(name string, n *yaml.Node, depth int) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Value == "" {
			return fmt.Errorf("%w, line %d: a key must be a name", ErrSyntax, key.Line)
		}
		full := key.Value
		if name != "" {
			full = name + "." + key.Value
		}
		if err := f.node(full, value, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (f *flattener) sequence(name string, n *yaml.Node, depth int) error {
	var items []string
	for i, item := range n.Content {
		if item.Kind == yaml.ScalarNode {
			if strings.Contains(item.Value, ",") {
				return fmt.Errorf("%w, line %d: %s: an item cannot have a comma in it", ErrSyntax, item.Line, name)
			}
			items = append(items, item.Value)
			continue
		}
		if err := f.node(name+"."+strconv.Itoa(i), item, depth+1); err != nil {
			return err
		}
	}
	switch {
	case len(items) == 0 && len(n.Content) > 0:
		return nil
	case len(items) != len(n.Content):
		return fmt.Errorf("%w, line %d: %s: a list has either values or keys", ErrSyntax, n.Line, name)
	}
	return f.put(name, strings.Join(items, ","), n.Line)
}

func (f *flattener) scalar(name string, n *yaml.Node) error {
	if n.Tag == "!!null" {
		return nil // "key:" without a value leaves the default
	}
	return f.put(name, n.Value, n.Line)
}

func (f *flattener) put(name, value string, line int) error {
	if first, twice := f.lines[name]; twice {
		return fmt.Errorf("%w, line %d: %s is set already in line %d", ErrSyntax, line, name, first)
	}
	if len(f.values) == keysMax {
		return fmt.Errorf("%w, line %d: more than %d keys", ErrSyntax, line, keysMax)
	}
	f.values[name], f.lines[name] = value, line
	return nil
}
