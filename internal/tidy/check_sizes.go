package tidy

import (
	"fmt"
	"go/ast"
)

func checkFunctionLines(t *tree, report func(finding)) {
	for _, f := range t.files {
		if f.generated {
			continue
		}
		eachFunc(f, func(d *ast.FuncDecl) {
			lines := t.line(d.End()) - t.line(d.Pos()) + 1
			if lines >= functionLines {
				report(finding{where: f.path + " " + funcName(d), line: t.line(d.Pos()), value: lines, text: fmt.Sprintf("has %d lines", lines)})
			}
		})
	}
}

func checkFileLines(t *tree, report func(finding)) {
	for _, f := range t.files {
		limit := fileLinesMax
		if f.isTest {
			limit = testLinesMax
		}
		if f.lines > limit && !f.generated {
			report(finding{where: f.path, line: f.lines, value: f.lines, text: fmt.Sprintf("has %d lines, limit %d", f.lines, limit)})
		}
	}
}

func checkInterfaces(t *tree, report func(finding)) {
	for _, f := range t.files {
		if f.generated {
			continue
		}
		eachType(f, func(s *ast.TypeSpec, _ *ast.GenDecl) {
			i, ok := s.Type.(*ast.InterfaceType)
			if !ok {
				return
			}
			// An embedded interface counts as one method: it is a thing that the reader knows.
			if n := i.Methods.NumFields(); n > interfaceMax {
				report(finding{where: f.path + " " + s.Name.Name, line: t.line(s.Pos()), value: n, text: fmt.Sprintf("has %d methods", n)})
			}
		})
	}
}

func checkParameters(t *tree, report func(finding)) {
	for _, f := range t.files {
		if f.generated {
			continue
		}
		eachFunc(f, func(d *ast.FuncDecl) {
			if n := d.Type.Params.NumFields(); n > parametersMax {
				report(finding{where: f.path + " " + funcName(d), line: t.line(d.Pos()), value: n, text: fmt.Sprintf("has %d parameters", n)})
			}
		})
	}
}
