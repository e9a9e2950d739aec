package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// controllerAddress is one entry of cluster.controllers.
type controllerAddress struct {
	node    kafka.NodeID
	address string
}

// String is the entry as it is configured.
func (c controllerAddress) String() string { return fmt.Sprintf("%d@%s", c.node, c.address) }

// parseControllers reads cluster.controllers, in node id order.
func parseControllers(list []string) ([]controllerAddress, error) {
	var out []controllerAddress
	for _, entry := range list {
		id, address, found := strings.Cut(entry, "@")
		node, err := strconv.ParseInt(id, 10, 32)
		if !found || err != nil || node < 0 || address == "" {
			return nil, fmt.Errorf("cluster.controllers: %q is not <node id>@<host>:<port>", entry)
		}
		out = append(out, controllerAddress{kafka.NodeID(node), address})
	}
	slices.SortFunc(out, func(a, b controllerAddress) int { return cmp.Compare(a.node, b.node) })
	for i := 1; i < len(out); i++ {
		if out[i].node == out[i-1].node {
			return nil, fmt.Errorf("cluster.controllers: node %d is listed twice", out[i].node)
		}
	}
	if n := len(out); n > controllersMax || n > 0 && n%2 == 0 {
		return nil, fmt.Errorf("%w: cluster.controllers lists %d", ErrControllers, n)
	}
	return out, nil
}

// configured is cluster.controllers of this node.
type configured struct {
	self kafka.NodeID
	list []controllerAddress
}

// listed says whether this node is to be a controller. Without a list it is the only one.
func (c configured) listed() bool {
	return len(c.list) == 0 || slices.ContainsFunc(c.list, func(a controllerAddress) bool { return a.node == c.self })
}

// alone says that there is nobody to ask.
func (c configured) alone() bool { return c.listed() && len(c.list) <= 1 }

// own is the address under which this node is listed, or "".
func (c configured) own() string { return c.addressOf(c.self) }

func (c configured) addressOf(node kafka.NodeID) string {
	for _, a := range c.list {
		if a.node == node {
			return a.address
		}
	}
	return ""
}

// others are the listed controllers without this node.
func (c configured) others() []controllerAddress {
	return slices.DeleteFunc(slices.Clone(c.list), func(a controllerAddress) bool { return a.node == c.self })
}

// text is the list in a canonical form, to compare it with another node's.
func (c configured) text() []string {
	var out []string
	for _, a := range c.list {
		out = append(out, a.String())
	}
	return out
}

// describes says whether a table is of exactly the listed nodes, at their listed addresses.
func (c configured) describes(table []metadata.Voter) bool {
	var out []string
	for _, v := range table {
		out = append(out, controllerAddress{v.Node, v.Address}.String())
	}
	slices.Sort(out)
	want := c.text()
	slices.Sort(want)
	return slices.Equal(out, want)
}
