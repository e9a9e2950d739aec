package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// internalImport returns the directory of an import of this repository.
func internalImport(importPath string) (dir string, ok bool) {
	return strings.CutPrefix(importPath, modulePath+"/")
}

// isFamily tells whether one directory is the other or below it.
func isFamily(a, b string) bool { return below(a, []string{b}) || below(b, []string{a}) }

// eachImport visits the imports of a file in order.
func eachImport(f *file, visit func(importPath string, at token.Pos)) {
	for _, spec := range f.syntax.Imports {
		visit(strings.Trim(spec.Path.Value, "`\""), spec.Pos())
	}
}

func checkRanks(t *tree, report func(finding)) {
	for _, f := range t.files {
		if f.isTest {
			continue
		}
		own, known := packages[f.dir]
		if !known {
			report(finding{where: f.path, line: 1, text: "package " + f.dir + " is not in the table"})
			continue
		}
		eachImport(f, func(importPath string, at token.Pos) {
			dir, ok := internalImport(importPath)
			if !ok || isFamily(dir, f.dir) || own.rank == unranked {
				return
			}
			other, known := packages[dir]
			switch {
			case !known:
				report(finding{where: f.path, line: t.line(at), text: "imports " + dir + ", which is not in the table"})
			case other.rank >= own.rank:
				text := fmt.Sprintf("rank %d imports %s of rank %d", own.rank, dir, other.rank)
				report(finding{where: f.path, line: t.line(at), text: text})
			}
		})
	}
}

func checkShipped(t *tree, report func(finding)) {
	for _, f := range t.shipped() {
		eachImport(f, func(importPath string, at token.Pos) {
			dir, ok := internalImport(importPath)
			isOurs := ok && (packages[dir].rank == unranked || below(dir, []string{"test", "bench"}))
			if isOurs || importPath == "testing" || strings.HasPrefix(importPath, "testing/") {
				report(finding{where: f.path, line: t.line(at), text: "imports " + importPath})
			}
		})
	}
}

func checkPure(t *tree, report func(finding)) {
	for _, f := range t.files {
		own := packages[f.dir]
		if f.isTest || !own.pure {
			continue
		}
		eachImport(f, func(importPath string, at token.Pos) {
			if !own.mayImport(importPath) {
				report(finding{where: f.path, line: t.line(at), text: "a pure package imports " + importPath})
			}
		})
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if what := impure(f, n); what != "" {
				report(finding{where: f.path, line: t.line(n.Pos()), text: "a pure package uses " + what})
			}
			return true
		})
	}
}

func (r rule) mayImport(importPath string) bool {
	if dir, ok := internalImport(importPath); ok {
		return packages[dir].pure // ranks are another check
	}
	return slices.Contains(pureImports, importPath) || matches(importPath, r.also)
}

// matches tells whether a path is in the list, or below an entry that ends in a slash.
func matches(importPath string, list []string) bool {
	return slices.ContainsFunc(list, func(e string) bool {
		return importPath == e || (strings.HasSuffix(e, "/") && strings.HasPrefix(importPath, e))
	})
}

// impure names what is wrong with one piece of syntax in a core, or is empty.
func impure(f *file, n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.ChanType:
		return "a channel"
	case *ast.SelectStmt:
		return "select"
	case *ast.SelectorExpr:
		importPath, name, ok := f.selector(n)
		if ok && slices.Contains(impureCalls[importPath], name) {
			return importPath + "." + name
		}
	}
	return ""
}

func checkDoors(t *tree, report func(finding)) {
	for _, f := range t.files {
		if f.isTest || below(f.dir, machineUsers) {
			continue
		}
		eachImport(f, func(importPath string, at token.Pos) {
			if matches(importPath, machineImports) {
				report(finding{where: f.path, line: t.line(at), text: "imports " + importPath})
			}
		})
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			importPath, name, ok := f.selector(n)
			if ok && slices.Contains(machineDoors[importPath], name) {
				report(finding{where: f.path, line: t.line(n.Pos()), text: "uses " + importPath + "." + name})
			}
			return true
		})
	}
}

func checkFaultTag(t *tree, report func(finding)) {
	for _, f := range t.files {
		expr := f.buildTags()
		if expr == nil || f.dir == "internal/sys" {
			continue
		}
		uses := false
		expr.Eval(func(tag string) bool {
			uses = uses || tag == "fault"
			return true
		})
		// Eval may stop early, so it is asked for both answers.
		expr.Eval(func(tag string) bool {
			uses = uses || tag == "fault"
			return false
		})
		if uses {
			report(finding{where: f.path, line: 1, text: "has the build tag fault"})
		}
	}
}
