package main

import (
	"strconv"

	"github.com/spf13/cobra"
)

func newPartitionCommand(a *app) *cobra.Command {
	return newGroupCommand("partition", "Move partitions between nodes, elect their leaders, find the hot ones",
		"Move replicas of partitions to other nodes, spread them evenly, elect leaders, and find the partitions and keys that get most records.",
		newPartitionMoveCommand(a), newPartitionElectCommand(a), newPartitionHotCommand(a))
}

// partitionNumbers reads the values of -p.
func partitionNumbers(values []string) ([]int32, error) {
	var out []int32
	for _, s := range values {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 {
			return nil, usagef("partition %q: want a number from 0", s)
		}
		out = append(out, int32(n))
	}
	return out, nil
}
