package tidy

import (
	"go/ast"
	"slices"
	"strings"
)

// skipNames are the methods that leave a test out.
var skipNames = []string{"Skip", "Skipf", "SkipNow"}

func checkSkips(t *tree, report func(finding)) {
	for _, f := range t.files {
		if !f.isTest {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains(skipNames, sel.Sel.Name) && isTestValue(sel.X) {
				report(finding{where: f.path, line: t.line(n.Pos()), text: "calls " + sel.Sel.Name})
			}
			return true
		})
	}
}

// isTestValue tells whether an expression looks like a *testing.T, B, F or TB by its usual name.
func isTestValue(e ast.Expr) bool {
	x, ok := e.(*ast.Ident)
	return ok && slices.Contains([]string{"t", "b", "f", "tb"}, x.Name)
}

// pollName is the one function of a test package that may wait for time: it asks again and again for what gives no event,
// such as the state of another process, and its bound only ends a hopeless test.
const pollName = "eventually"

// checkSleeps reports time.Sleep in tests. In a bubble time is fake and costs nothing, so a sleep inside a call of
// synctest.Test, or of a function with Bubble in its name, is fine, and so is one inside such a function.
func checkSleeps(t *tree, report func(finding)) {
	for _, f := range t.files {
		if !f.isTest {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f.isBubble(n.Fun) {
					return false
				}
			case *ast.FuncDecl:
				if n.Name.Name == pollName || strings.Contains(n.Name.Name, "Bubble") {
					return false
				}
			}
			if importPath, name, ok := f.selector(n); ok && importPath == "time" && name == "Sleep" {
				report(finding{where: f.path, line: t.line(n.Pos()), text: "sleeps"})
			}
			return true
		})
	}
}

// isBubble tells whether calling e runs its argument in a bubble.
func (f *file) isBubble(e ast.Expr) bool {
	if importPath, name, ok := f.selector(e); ok && importPath == "testing/synctest" {
		return name == "Test"
	}
	switch e := e.(type) {
	case *ast.Ident:
		return strings.Contains(e.Name, "Bubble")
	case *ast.SelectorExpr:
		return strings.Contains(e.Sel.Name, "Bubble")
	}
	return false
}
