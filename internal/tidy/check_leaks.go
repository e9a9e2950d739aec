package tidy

import (
	"go/ast"
	"strings"
)

// checkLeaks looks at the exported declarations of the public packages for types of internal ones: a user could neither
// name nor make such a value, and a change inside would break them.
func checkLeaks(t *tree, report func(finding)) {
	for _, f := range t.files {
		if f.isTest || !below(f.dir, publicPackages) {
			continue
		}
		look := func(name string, n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				importPath, typeName, ok := f.selector(n)
				if ok && strings.HasPrefix(importPath, modulePath+"/internal/") {
					report(finding{where: f.path + " " + name, line: t.line(n.Pos()), text: "shows " + importPath + "." + typeName})
				}
				return true
			})
		}
		for _, decl := range f.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiverName(d.Recv.List[0].Type))) {
					look(funcName(d), d.Type)
				}
			case *ast.GenDecl:
				lookAtSpecs(d, look)
			}
		}
	}
}

func lookAtSpecs(d *ast.GenDecl, look func(name string, n ast.Node)) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				lookAtType(s, look)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Type != nil {
					look(name.Name, s.Type)
				}
			}
		}
	}
}

// lookAtType leaves the unexported fields of a struct out.
func lookAtType(s *ast.TypeSpec, look func(name string, n ast.Node)) {
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		look(s.Name.Name, s.Type)
		return
	}
	for _, field := range st.Fields.List {
		isVisible := len(field.Names) == 0 // an embedded type shows its methods, whatever its name
		for _, name := range field.Names {
			isVisible = isVisible || name.IsExported()
		}
		if isVisible {
			look(s.Name.Name, field.Type)
		}
	}
}
