package tidy

import "fmt"

// check is one rule about the source.
type check struct {
	name string
	why  string // one line, shown with each breach
	run  func(t *tree, report func(finding))
}

// checks lists all rules.
var checks = []check{
	{"rank", "a package imports only lower ranks (internal/tidy/table.go)", checkRanks},
	{"shipped", "code that ships does not use what was made for tests", checkShipped},
	{"pure", "a core has no goroutine, lock, clock, disk, socket or randomness", checkPure},
	{"door", "only sys, cmd and tests open files and sockets", checkDoors},
	{"package-name", "a package is named for what it knows", checkPackageNames},
	{"type-name", "a type is named for what it is", checkTypeNames},
	{"function-lines", "a function has fewer than 70 lines", checkFunctionLines},
	{"file-lines", "a file has at most 800 lines, a test 1000", checkFileLines},
	{"interface-methods", "an interface has at most 7 methods", checkInterfaces},
	{"parameters", "a function has at most 5 parameters, or an options struct", checkParameters},
	{"package-doc", "a package says what it knows", checkPackageDocs},
	{"exported-doc", "an exported name has a comment", checkExportedDocs},
	{"sentinel", "an exported error value is declared in errors.go", checkSentinels},
	{"marker", "what is to be done is an issue, not a comment", checkMarkers},
	{"skip", "a test runs or does not exist", checkSkips},
	{"sleep", "a test waits for an event, not for time (bubble time is free)", checkSleeps},
	{"for-testing", "no methods for tests in shipped code", checkForTesting},
	{"fault-tag", "the fault build lives in internal/sys alone", checkFaultTag},
	{"leak", "public packages show no internal type", checkLeaks},
	{"link", "links between documents lead somewhere", checkLinks},
	{"decision", "a decision has a number of its own, and its title begins with it", checkDecisions},
	{"guarantee", "every requirement has a row, and every proof named there exists", checkGuarantees},
	{"road", "functions named as `file.go Name` in ARCHITECTURE.md exist", checkRoads},
}

// findings runs every check.
func (t *tree) findings() []finding {
	out := append([]finding(nil), t.bad...)
	for _, c := range checks {
		c.run(t, func(f finding) {
			f.check = c.name
			f.text = fmt.Sprintf("%s [%s]", f.text, c.why)
			out = append(out, f)
		})
	}
	return out
}
