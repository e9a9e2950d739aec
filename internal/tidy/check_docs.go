package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	guaranteesFile = "docs/guarantees.md"
	decisionsDir   = "docs/decisions"
)

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	mdLink     = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	// testName is a test, fuzz target, benchmark or example as go test names them.
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z0-9_]\w*`)
	// scriptName is a file that a row names as its proof.
	scriptName = regexp.MustCompile(`[\w./-]+\.(?:txt|txtar|sh|py|md)\b`)
	rowStart   = regexp.MustCompile(`^\|\s*R(\d+)\s*\|`)
	// roadStep is a step of a road; "package/file.go" itself is how the page explains the notation.
	roadStep = regexp.MustCompile("`([a-z0-9_/]+\\.go) ([A-Za-z0-9_.]+)`")
)

// eachDocLine visits the lines of the documents outside code blocks, in path order.
func eachDocLine(t *tree, visit func(doc string, line int, text string)) {
	names := make([]string, 0, len(t.docs))
	for name := range t.docs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		inCode := false
		for i, text := range strings.Split(t.docs[name], "\n") {
			if strings.HasPrefix(strings.TrimSpace(text), "```") {
				inCode = !inCode
				continue
			}
			if !inCode {
				visit(name, i+1, text)
			}
		}
	}
}

func checkLinks(t *tree, report func(finding)) {
	eachDocLine(t, func(doc string, line int, text string) {
		for _, m := range mdLink.FindAllStringSubmatch(inlineCode.ReplaceAllString(text, ""), -1) {
			if why := t.brokenLink(doc, m[1]); why != "" {
				report(finding{where: doc + " " + m[1], line: line, text: why})
			}
		}
	})
}

// checkDecisions: pages and comments cite decisions by number.
func checkDecisions(t *tree, report func(finding)) {
	names := make([]string, 0, len(t.docs))
	for name := range t.docs {
		if path.Dir(name) == decisionsDir {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	before := ""
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "-")
		if number == before {
			report(finding{where: name, line: 1, text: "another decision has this number"})
		}
		before = number
		if !strings.HasPrefix(t.docs[name], "# "+number+" ") {
			report(finding{where: name, line: 1, text: "the title does not begin with the number of the file"})
		}
	}
}

// brokenLink says what is wrong with a link, or is empty. Links to other sites are not followed.
func (t *tree) brokenLink(doc, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	name, anchor, _ := strings.Cut(target, "#")
	at := doc
	if name != "" {
		at = path.Join(path.Dir(doc), name)
		if strings.HasPrefix(name, "/") {
			at = strings.TrimPrefix(path.Clean(name), "/")
		}
	}
	if !t.paths[at] {
		return "there is no " + at
	}
	content, isDoc := t.docs[at]
	if anchor == "" || !isDoc {
		return ""
	}
	if !slices.Contains(anchors(content), anchor) {
		return at + " has no heading for #" + anchor
	}
	return ""
}

// anchors lists the names that headings of a document get: small letters, words joined by hyphens, punctuation dropped.
func anchors(content string) []string {
	var out []string
	seen := map[string]int{}
	for _, line := range strings.Split(content, "\n") {
		heading := strings.TrimLeft(line, "#")
		if len(heading) == len(line) || !strings.HasPrefix(heading, " ") {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, strings.TrimSpace(heading))
		if n := seen[name]; n > 0 {
			out = append(out, fmt.Sprintf("%s-%d", name, n))
		} else {
			out = append(out, name)
		}
		seen[name]++
	}
	return out
}

// checkGuarantees applies once the page exists.
func checkGuarantees(t *tree, report func(finding)) {
	page, ok := t.docs[guaranteesFile]
	if !ok {
		return
	}
	declared := t.declaredTests()
	rows := map[string]int{}
	for i, line := range strings.Split(page, "\n") {
		m := rowStart.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id := "R" + m[1]
		rows[id]++
		bad := func(format string, args ...any) {
			report(finding{where: guaranteesFile + " " + id, line: i + 1, text: fmt.Sprintf(format, args...)})
		}
		if rows[id] > 1 {
			bad("has a second row")
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 {
			bad("has %d cells: id, requirement, state and proof are needed", len(cells))
			continue
		}
		t.checkProof(cells[len(cells)-2], cells[len(cells)-1], declared, bad)
	}
	for n := 1; n <= requirementsLast; n++ {
		if id := fmt.Sprintf("R%d", n); rows[id] == 0 {
			report(finding{where: guaranteesFile + " " + id, line: 1, text: "has no row"})
		}
		delete(rows, fmt.Sprintf("R%d", n))
	}
	for id := range rows {
		report(finding{where: guaranteesFile + " " + id, line: 1, text: "is no requirement"})
	}
}

// checkProof looks at the last two cells of a row: a state other than "not yet" needs a proof, and what is named must exist.
func (t *tree) checkProof(state, proof string, declared map[string]bool, bad func(string, ...any)) {
	state = strings.TrimSpace(state)
	if state == "" {
		bad("has no state")
		return
	}
	tests, scripts := testName.FindAllString(proof, -1), scriptName.FindAllString(testName.ReplaceAllString(proof, ""), -1)
	if !strings.HasPrefix(state, "not yet") && len(tests)+len(scripts) == 0 {
		bad("says %q and names no test, script or page", state)
	}
	for _, name := range tests {
		if !declared[name] {
			bad("names %s, which no test file declares", name)
		}
	}
	for _, name := range scripts {
		if !t.hasPath(name) {
			bad("names %s, which is not there", name)
		}
	}
}

// hasPath tells whether a file has this path, or one that ends in it; relative links from docs/ count.
func (t *tree) hasPath(name string) bool {
	if t.paths[path.Join(path.Dir(guaranteesFile), name)] {
		return true
	}
	name = path.Clean(name)
	for p := range t.paths {
		if p == name || strings.HasSuffix(p, "/"+name) {
			return true
		}
	}
	return false
}

// declaredTests lists the functions of all test files, nested modules included.
func (t *tree) declaredTests() map[string]bool {
	out := map[string]bool{}
	for _, f := range t.files {
		if strings.HasSuffix(f.path, "_test.go") {
			eachFunc(f, func(d *ast.FuncDecl) { out[d.Name.Name] = true })
		}
	}
	return out
}

// checkRoads follows the steps that ARCHITECTURE.md names, so that a road can be walked from the page into the code.
func checkRoads(t *tree, report func(finding)) {
	eachDocLine(t, func(doc string, line int, text string) {
		if doc != "ARCHITECTURE.md" {
			return
		}
		for _, m := range roadStep.FindAllStringSubmatch(text, -1) {
			if m[1] != "package/file.go" && !t.declares(m[1], m[2]) {
				report(finding{where: doc + " " + m[1] + " " + m[2], line: line, text: "is not in the source"})
			}
		}
	})
}

// declares tells whether a file, named from the root or from internal/, declares a function, a method (Name or Type.Name)
// or a type.
func (t *tree) declares(name, what string) bool {
	for _, f := range t.files {
		if f.path != name && f.path != "internal/"+name {
			continue
		}
		found := false
		eachFunc(f, func(d *ast.FuncDecl) { found = found || d.Name.Name == what || funcName(d) == what })
		eachType(f, func(s *ast.TypeSpec, _ *ast.GenDecl) { found = found || s.Name.Name == what })
		return found
	}
	return false
}
