package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/plan"
)

const quotaLong = `A quota limits what clients take from each node: the bytes they publish (producer_byte_rate) or read (consumer_byte_rate) a second, the time
their requests take, in percent of one core (request_percentage), the partitions they make and delete a second (controller_mutation_rate),
and the connections an address makes a second (connection_creation_rate, for --ip). It is for a user, a client id, both together, or,
with --default, for each one that has no quota by name. What is named goes before what is a default, the user before the client id.`

func newQuotaCommand(a *app) *cobra.Command {
	return newGroupCommand("quota", "Limit what users, client ids and addresses take", quotaLong,
		newQuotaSetCommand(a), newQuotaListCommand(a), newQuotaDeleteCommand(a))
}

// entityFlags say whose quota it is.
type entityFlags struct {
	user, client, ip string
	defaults         []string
}

func (f *entityFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.user, "user", "", "`USER`, as clients log in; ANONYMOUS where they do not")
	cmd.Flags().StringVar(&f.client, "client-id", "", "client id, `ID`, as clients call themselves")
	cmd.Flags().StringVar(&f.ip, "ip", "", "`HOST` that clients connect from, an address")
	cmd.Flags().StringSliceVar(&f.defaults, "default", nil, "each `user|client-id|ip` that has no quota by name (repeatable)")
}

// entity is what the flags name; none is empty.
func (f *entityFlags) entity() (kadm.ClientQuotaEntity, error) {
	var out kadm.ClientQuotaEntity
	for _, p := range []struct{ kind, name string }{
		{metadata.EntityUser, f.user}, {metadata.EntityClient, f.client}, {metadata.EntityIP, f.ip},
	} {
		byDefault := slices.Contains(f.defaults, p.kind)
		switch {
		case byDefault && p.name != "":
			return nil, usagef("--%s and --default %s: a quota is for one or for the others", p.kind, p.kind)
		case byDefault:
			out = append(out, kadm.ClientQuotaEntityComponent{Type: p.kind})
		case p.name != "":
			out = append(out, kadm.ClientQuotaEntityComponent{Type: p.kind, Name: &p.name})
		}
	}
	for _, d := range f.defaults {
		if !slices.Contains([]string{metadata.EntityUser, metadata.EntityClient, metadata.EntityIP}, d) {
			return nil, usagef("--default %s: want user, client-id or ip", d)
		}
	}
	return out, nil
}

// one is entity, of which there has to be one.
func (f *entityFlags) one() (kadm.ClientQuotaEntity, error) {
	e, err := f.entity()
	if err == nil && len(e) == 0 {
		err = usagef("whose quota: give --user, --client-id, --ip or --default")
	}
	return e, err
}

func newQuotaSetCommand(a *app) *cobra.Command {
	var f entityFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "set KIND=VALUE... (--user USER | --client-id ID | --ip HOST | --default TYPE)",
		Short: "Set quotas",
		Long:  "Set quotas; those that are not named stay. Bytes may have a decimal unit: 500KB, 20MB, 1GB.\n\n" + quotaLong,
		Example: `  strandline quota set --user shop producer_byte_rate=20MB consumer_byte_rate=40MB
  strandline quota set --default user request_percentage=50
  strandline quota set --user shop --client-id batch producer_byte_rate=1MB
  strandline quota set --default ip connection_creation_rate=20`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			entity, err := f.one()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return usagef("which quota: give KIND=VALUE, as producer_byte_rate=20MB")
			}
			change := kadm.AlterClientQuotaEntry{Entity: entity}
			for _, arg := range args {
				op, err := parseQuota(arg)
				if err != nil {
					return err
				}
				change.Ops = append(change.Ops, op)
			}
			return a.quotaAlter(cmd, change, dryRun, "not set")
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only ask whether that could be set")
	return cmd
}

func parseQuota(arg string) (op kadm.AlterClientQuotaOp, err error) {
	name, value, given := strings.Cut(arg, "=")
	kind, known := metadata.ParseQuotaKind(name)
	switch {
	case !given:
		return op, usagef("%q: want KIND=VALUE, as producer_byte_rate=20MB", arg)
	case !known:
		return op, usagef("there is no quota %q; there are %s", name, quotaKinds())
	}
	v, err := strconv.ParseFloat(value, 64)
	if kind == metadata.QuotaProduce || kind == metadata.QuotaFetch {
		v, err = plan.ParseBytes(value)
	}
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 {
		return op, usagef("%s=%s: want a number above 0", name, value)
	}
	return kadm.AlterClientQuotaOp{Key: name, Value: v}, nil
}

func quotaKinds() string {
	var out []string
	for k := metadata.QuotaProduce; k <= metadata.QuotaConnection; k++ {
		out = append(out, k.String())
	}
	return strings.Join(out, ", ")
}

func newQuotaDeleteCommand(a *app) *cobra.Command {
	var f entityFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "delete [KIND...] (--user USER | --client-id ID | --ip HOST | --default TYPE)",
		Short: "Delete quotas",
		Long:  "Delete quotas of one entity: the kinds that are named, or all. Only quotas of exactly this entity are deleted.",
		Example: `  strandline quota delete --user shop
  strandline quota delete --user shop consumer_byte_rate`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			entity, err := f.one()
			if err != nil {
				return err
			}
			change := kadm.AlterClientQuotaEntry{Entity: entity}
			for _, arg := range args {
				if _, known := metadata.ParseQuotaKind(arg); !known {
					return usagef("there is no quota %q; there are %s", arg, quotaKinds())
				}
				change.Ops = append(change.Ops, kadm.AlterClientQuotaOp{Key: arg, Remove: true})
			}
			return a.quotaDelete(cmd, change, dryRun)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would be deleted")
	return cmd
}

// quotaAlter makes one change, and prints what the entity has then.
func (a *app) quotaAlter(cmd *cobra.Command, change kadm.AlterClientQuotaEntry, dryRun bool, not string) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	if err := s.alterQuota(ctx, change, dryRun); err != nil {
		return s.explain(err, "the quota of %s %s", entityText(change.Entity), not)
	}
	if dryRun {
		_, err := fmt.Fprintln(a.stdout, "nothing was changed; this could be set")
		return err
	}
	have, err := s.quotas(ctx, change.Entity, true)
	if err != nil {
		return s.explain(err, "the quota is set; cannot show it")
	}
	return a.printQuotas(s, have)
}

func (s *session) alterQuota(ctx context.Context, change kadm.AlterClientQuotaEntry, dryRun bool) error {
	alter := s.admin.AlterClientQuotas
	if dryRun {
		alter = s.admin.ValidateAlterClientQuotas
	}
	answers, err := alter(ctx, []kadm.AlterClientQuotaEntry{change})
	for _, r := range answers {
		if err == nil {
			err = answered(r.Err, r.ErrMessage)
		}
	}
	return err
}

// quotaDelete deletes quotas of an entity that are there, and prints them.
func (a *app) quotaDelete(cmd *cobra.Command, change kadm.AlterClientQuotaEntry, dryRun bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	have, err := s.quotas(ctx, change.Entity, true)
	if err != nil {
		return s.explain(err, "no quota deleted")
	}
	all := len(change.Ops) == 0
	named := func(key string) bool {
		return all || slices.ContainsFunc(change.Ops, func(op kadm.AlterClientQuotaOp) bool { return op.Key == key })
	}
	var gone kadm.DescribedClientQuotas
	var ops []kadm.AlterClientQuotaOp
	for _, q := range have {
		q.Values = slices.DeleteFunc(q.Values, func(v kadm.ClientQuotaValue) bool { return !named(v.Key) })
		for _, v := range q.Values {
			ops = append(ops, kadm.AlterClientQuotaOp{Key: v.Key, Remove: true})
		}
		gone = append(gone, q)
	}
	if len(ops) == 0 {
		return &failure{what: fmt.Sprintf("%s has no such quota", entityText(change.Entity)), todo: "see `strandline quota list`"}
	}
	if !dryRun {
		change.Ops = ops
		if err := s.alterQuota(ctx, change, false); err != nil {
			return s.explain(err, "no quota of %s deleted", entityText(change.Entity))
		}
	}
	return a.printQuotas(s, gone)
}

func newQuotaListCommand(a *app) *cobra.Command {
	var f entityFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List quotas",
		Long:    "List quotas: all, or those of entities that have the parts that are named.",
		Example: "  strandline quota list\n  strandline quota list --user shop\n  strandline quota list --default user -o json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			entity, err := f.entity()
			if err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			ctx, cancel := s.bounded(cmd.Context())
			defer cancel()
			have, err := s.quotas(ctx, entity, false)
			if err != nil {
				return s.explain(err, "cannot list quotas")
			}
			return a.printQuotas(s, have)
		},
	}
	f.add(cmd)
	return cmd
}

// quotas are those of entities that have these parts, with exactly only those that have no others.
func (s *session) quotas(ctx context.Context, parts kadm.ClientQuotaEntity, exactly bool) (kadm.DescribedClientQuotas, error) {
	var filter []kadm.DescribeClientQuotaComponent
	for _, p := range parts {
		c := kadm.DescribeClientQuotaComponent{Type: p.Type, MatchName: p.Name}
		if p.Name == nil {
			c.MatchType = 1
		}
		filter = append(filter, c)
	}
	return s.admin.DescribeClientQuotas(ctx, exactly, filter)
}

// everyOther stands for the default in what is shown.
const everyOther = "(default)"

func entityText(e kadm.ClientQuotaEntity) string {
	var out []string
	for _, p := range e {
		name := everyOther
		if p.Name != nil {
			name = *p.Name
		}
		out = append(out, p.Type+" "+name)
	}
	return strings.Join(out, ", ")
}

// shownQuota is a line of quota -o json. A part that is null is the default; one that is left out is not asked.
type shownQuota struct {
	Entity map[string]*string `json:"entity"`
	Quotas map[string]float64 `json:"quotas"`
}

func (a *app) printQuotas(s *session, all kadm.DescribedClientQuotas) error {
	p := a.printer(s.settings)
	var rows [][]string
	for _, q := range all {
		shown := shownQuota{Entity: map[string]*string{}, Quotas: map[string]float64{}}
		for _, part := range q.Entity {
			shown.Entity[part.Type] = part.Name
		}
		for _, v := range q.Values {
			shown.Quotas[v.Key] = v.Value
			rows = append(rows, []string{entityText(q.Entity), v.Key, strconv.FormatFloat(v.Value, 'f', -1, 64)})
		}
		if p.json {
			if err := p.object(shown); err != nil {
				return err
			}
		}
	}
	if p.json {
		return nil
	}
	return p.table([]string{"ENTITY", "QUOTA", "VALUE"}, rows)
}
