package tidy

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
)

func checkPackageDocs(t *tree, report func(finding)) {
	documented, first := map[string]bool{}, map[string]*file{}
	for _, f := range t.files {
		key := f.dir + " " + f.syntax.Name.Name
		if first[key] == nil {
			first[key] = f
		}
		if f.syntax.Doc != nil {
			documented[key], documented[f.dir+" "+f.syntax.Name.Name+"_test"] = true, true
		}
	}
	for _, f := range t.files {
		key := f.dir + " " + f.syntax.Name.Name
		if !documented[key] && first[key] == f {
			report(finding{where: f.dir, line: 1, text: "package " + f.syntax.Name.Name + " has no package comment"})
		}
	}
}

func checkExportedDocs(t *tree, report func(finding)) {
	for _, f := range t.files {
		if f.isTest || f.generated || f.syntax.Name.Name == "main" {
			continue
		}
		missing := func(name string, at token.Pos) {
			report(finding{where: f.path + " " + name, line: t.line(at), text: "has no comment"})
		}
		for _, decl := range f.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if needsComment(d) && d.Doc == nil {
					missing(funcName(d), d.Pos())
				}
			case *ast.GenDecl:
				undocumentedSpecs(d, missing)
			}
		}
	}
}

// needsComment leaves out methods that say all by their name in every Go program.
func needsComment(d *ast.FuncDecl) bool {
	if !d.Name.IsExported() || d.Recv == nil {
		return d.Name.IsExported()
	}
	isUsual := slices.Contains([]string{"Error", "Unwrap", "String"}, d.Name.Name)
	return ast.IsExported(receiverName(d.Recv.List[0].Type)) && !isUsual
}

// undocumentedSpecs reports exported types without a comment, and exported constants and variables that have neither a
// comment of their own nor one for their group.
func undocumentedSpecs(d *ast.GenDecl, missing func(name string, at token.Pos)) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || len(d.Specs) > 1) {
				missing(s.Name.Name, s.Pos())
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
					missing(name.Name, name.Pos())
				}
			}
		}
	}
}

// markers are words that leave work in the source. Pieces, so that this file is not its own finding.
var markers = regexp.MustCompile(`\b(` + "TO" + "DO|FIX" + "ME|XX" + `X)\b`)

func checkMarkers(t *tree, report func(finding)) {
	for _, f := range t.files {
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				if m := markers.FindString(c.Text); m != "" {
					report(finding{where: f.path, line: t.line(c.Pos()), text: "says " + m})
				}
			}
		}
	}
}
