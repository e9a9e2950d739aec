package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const doctorLong = `Look at a cluster as a client on this machine meets it: whether each listener that was named answers, whether the addresses that brokers give
to clients lead to them from here, TLS and certificates, clocks, disks, open files (of the node at --http; on its own machine it is found without), copies and controllers, and whether all nodes speak
the same versions. What is wrong is named with what to change. Nothing is changed, and no certificate that you do not trust is used for anything but
to say so.

Exit code 1 if anything is wrong. A warning is a risk that you may want, such as topics with one copy.`

func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Find out why clients on this machine have trouble, and what to change", Long: doctorLong,
		Example: `  strandline doctor
  strandline doctor --brokers broker-1.example:9092 --http http://broker-1.example:8080
  strandline doctor -o json | jq '.findings[] | select(.state != "ok")'`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

// The states of a finding, the worst first.
const (
	stateWrong   = "wrong"   // something does not work, or will not for long
	stateWarning = "warning" // a risk that may be wanted
	stateUnknown = "unknown" // could not be looked at
	stateOK      = "ok"
)

// finding is what one check came to.
type finding struct {
	Check  string `json:"check"` // listener, advertise, tls, clock, disk, limits, replication, versions
	Where  string `json:"where"` // the address, node or topic
	State  string `json:"state"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to change; "" when there is nothing to change
}

// diagnosis is `doctor -o json`.
type diagnosis struct {
	OK       bool      `json:"ok"` // nothing is wrong
	Findings []finding `json:"findings"`
}

func (a *app) doctor(ctx context.Context) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	d := diagnose(examine(ctx, s))
	if err := a.printer(s).printDiagnosis(d); err != nil {
		return err
	}
	if !d.OK {
		return errPartial // the reasons have been printed
	}
	return nil
}

func (p printer) printDiagnosis(d diagnosis) error {
	if p.json {
		return p.object(d)
	}
	count := map[string]int{}
	for _, f := range d.Findings {
		count[f.State]++
		if _, err := fmt.Fprintf(p.w, "%-7s  %-11s  %s: %s\n", f.State, f.Check, f.Where, oneLine(f.Detail)); err != nil {
			return err
		}
		if f.Fix != "" {
			fmt.Fprintf(p.w, "%s fix: %s\n", strings.Repeat(" ", 21), f.Fix)
		}
	}
	_, err := fmt.Fprintf(p.w, "%d wrong, %d warnings, %d unknown, %d ok\n", count[stateWrong], count[stateWarning], count[stateUnknown], count[stateOK])
	return err
}
