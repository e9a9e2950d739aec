package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// groupLag asks for the members and the lag of a group of either protocol. DescribeGroups, which kadm's Lag asks, knows the classic ones alone.
func (s *session) groupLag(ctx context.Context, name string) (kadm.DescribedGroupLag, error) {
	lags, err := s.admin.Lag(ctx, name)
	if err != nil {
		return kadm.DescribedGroupLag{}, err
	}
	g, ok := lags[name]
	switch {
	case ok && g.Error() == nil && g.State != "Dead": // what older brokers say of a group that does not exist
		return g, nil
	case ok && g.Error() != nil && !errors.Is(g.Error(), kerr.GroupIDNotFound):
		return g, g.Error()
	}
	return s.consumerGroupLag(ctx, name)
}

// consumerGroupLag asks for a group of the consumer protocol (KIP-848).
func (s *session) consumerGroupLag(ctx context.Context, name string) (kadm.DescribedGroupLag, error) {
	all, err := s.admin.DescribeConsumerGroups(ctx, name)
	if err != nil {
		return kadm.DescribedGroupLag{}, err
	}
	g, ok := all[name]
	switch {
	case !ok:
		return kadm.DescribedGroupLag{}, kerr.GroupIDNotFound
	case g.Err != nil:
		return kadm.DescribedGroupLag{}, g.Err
	}
	commits, err := s.admin.FetchOffsets(ctx, name)
	if err != nil {
		return kadm.DescribedGroupLag{}, err
	}
	out := kadm.DescribedGroupLag{Group: name, Coordinator: g.Coordinator, State: g.State, ProtocolType: "consumer", Protocol: g.AssignorName}
	for _, m := range g.Members {
		out.Members = append(out.Members, kadm.DescribedGroupMember{MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost})
		for topic, partitions := range m.Assignment {
			for p := range partitions {
				if _, committed := commits.Lookup(topic, p); !committed {
					commits.Add(kadm.OffsetResponse{Offset: kadm.Offset{Topic: topic, Partition: p, At: -1, LeaderEpoch: -1}})
				}
			}
		}
	}
	starts, ends, err := s.bounds(ctx, slices.Sorted(maps.Keys(commits)))
	if err != nil {
		return kadm.DescribedGroupLag{}, err
	}
	out.Lag = kadm.CalculateGroupLagWithStartOffsets(kadm.DescribedGroup{Group: name}, commits, starts, ends)
	for i, m := range g.Members {
		for topic, partitions := range m.Assignment {
			for p := range partitions {
				l := out.Lag[topic][p]
				l.Member = &out.Members[i]
				out.Lag[topic][p] = l
			}
		}
	}
	return out, nil
}

// bounds lists where the partitions of topics begin and end.
func (s *session) bounds(ctx context.Context, topics []string) (starts, ends kadm.ListedOffsets, err error) {
	if len(topics) == 0 {
		return nil, nil, nil
	}
	if starts, err = s.admin.ListStartOffsets(ctx, topics...); err != nil {
		return nil, nil, err
	}
	ends, err = s.admin.ListEndOffsets(ctx, topics...)
	return starts, ends, err
}
