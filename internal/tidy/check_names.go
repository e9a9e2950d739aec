package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

func checkPackageNames(t *tree, report func(finding)) {
	for _, f := range t.files {
		for _, name := range []string{strings.TrimSuffix(f.syntax.Name.Name, "_test"), path.Base(f.dir)} {
			if slices.Contains(bannedPackages, name) {
				report(finding{where: f.path, line: t.line(f.syntax.Name.Pos()), text: "package is called " + name})
				break
			}
		}
	}
}

func checkTypeNames(t *tree, report func(finding)) {
	for _, f := range t.shipped() {
		eachType(f, func(s *ast.TypeSpec, _ *ast.GenDecl) {
			for _, end := range bannedTypeEnds {
				if strings.HasSuffix(strings.ToLower(s.Name.Name), strings.ToLower(end)) && isWordEnd(s.Name.Name, end) {
					report(finding{where: f.path + " " + s.Name.Name, line: t.line(s.Pos()), text: "type name ends in " + end})
				}
			}
		})
	}
}

// isWordEnd tells whether name ends in the word: it begins there with a capital, or is the whole name. "metadata" ends in
// the letters of Data and not in the word.
func isWordEnd(name, word string) bool {
	start := len(name) - len(word)
	return start == 0 || name[start:] == word
}

func eachType(f *file, visit func(s *ast.TypeSpec, d *ast.GenDecl)) {
	for _, decl := range f.syntax.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE {
			continue
		}
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				visit(s, d)
			}
		}
	}
}

func eachFunc(f *file, visit func(d *ast.FuncDecl)) {
	for _, decl := range f.syntax.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok {
			visit(d)
		}
	}
}

func checkForTesting(t *tree, report func(finding)) {
	for _, f := range t.shipped() {
		eachFunc(f, func(d *ast.FuncDecl) {
			if strings.Contains(strings.ToLower(d.Name.Name), "fortest") {
				report(finding{where: f.path + " " + funcName(d), line: t.line(d.Pos()), text: "is made for tests"})
			}
		})
	}
}

func checkSentinels(t *tree, report func(finding)) {
	for _, f := range t.shipped() {
		if path.Base(f.path) == "errors.go" {
			continue
		}
		for _, decl := range f.syntax.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, name := range specNames(d) {
				if rest, ok := strings.CutPrefix(name.Name, "Err"); ok && rest != "" && ast.IsExported(rest) {
					report(finding{where: f.path + " " + name.Name, line: t.line(name.Pos()), text: "is declared in " + path.Base(f.path)})
				}
			}
		}
	}
}

// specNames lists the names that a var or const declaration declares.
func specNames(d *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	for _, spec := range d.Specs {
		if s, ok := spec.(*ast.ValueSpec); ok {
			names = append(names, s.Names...)
		}
	}
	return names
}
