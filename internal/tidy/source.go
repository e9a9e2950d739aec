package tidy

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// skippedDirs hold nothing that was written by hand for people to read.
var skippedDirs = []string{".git", ".cache", "bin", "node_modules"}

// tree is the source to be checked.
type tree struct {
	fset  *token.FileSet
	files []*file           // Go files in path order
	docs  map[string]string // Markdown by path
	paths map[string]bool   // every file and directory
	bad   []finding         // what could not be read
}

// file is one Go file.
type file struct {
	path      string // slash-separated, from the root of the repository
	dir       string
	lines     int
	isTest    bool // a _test.go file, or one in a directory of tests
	generated bool
	syntax    *ast.File
	imports   map[string]string // local name -> import path
}

// finding is one breach of one rule.
type finding struct {
	check string
	where string // stable name of the place: path, or path and identifier
	line  int
	value int // the size, where the rule is about one
	text  string
}

// String is what a developer reads.
func (f finding) String() string {
	return fmt.Sprintf("%s: %s (line %d): %s", f.check, f.where, f.line, f.text)
}

// load reads the repository at root.
func load(root string) (*tree, error) {
	sources, others := map[string]string{}, []string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains(skippedDirs, d.Name()) {
				return fs.SkipDir
			}
			others = append(others, rel)
			return nil
		}
		others = append(others, rel)
		if !isRead(rel) {
			return nil
		}
		b, err := os.ReadFile(name)
		sources[rel] = string(b)
		return err
	})
	if err != nil {
		return nil, err
	}
	t := newTree(sources)
	for _, p := range others {
		t.paths[p] = true
	}
	return t, nil
}

func isRead(name string) bool {
	return (strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/")) || strings.HasSuffix(name, ".md")
}

// newTree parses sources, by path.
func newTree(sources map[string]string) *tree {
	t := &tree{fset: token.NewFileSet(), docs: map[string]string{}, paths: map[string]bool{}}
	names := make([]string, 0, len(sources))
	for name := range sources {
		names = append(names, name)
		for p := name; p != "."; p = path.Dir(p) {
			t.paths[p] = true
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, ".go") {
			t.parse(name, sources[name])
		} else {
			t.docs[name] = sources[name]
		}
	}
	return t
}

func (t *tree) parse(name, source string) {
	syntax, err := parser.ParseFile(t.fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.bad = append(t.bad, finding{check: "parse", where: name, text: err.Error()})
		return
	}
	f := &file{
		path: name, dir: path.Dir(name), syntax: syntax, generated: ast.IsGenerated(syntax), imports: map[string]string{},
		lines:  strings.Count(source, "\n"),
		isTest: strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "bench/"),
	}
	for _, spec := range syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it, so it is a string
		}
		local := importName(p)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		f.imports[local] = p
	}
	t.files = append(t.files, f)
}

// importName guesses the name of a package from its path: the last element that is no major version, without "go-".
func importName(p string) string {
	last := path.Base(p)
	if len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = path.Base(path.Dir(p))
	}
	return strings.TrimPrefix(last, "go-")
}

// line returns the line of a position.
func (t *tree) line(p token.Pos) int { return t.fset.Position(p).Line }

// shipped gives the files that are part of the product.
func (t *tree) shipped() []*file {
	var out []*file
	for _, f := range t.files {
		if !f.isTest && packages[f.dir].rank != unranked {
			out = append(out, f)
		}
	}
	return out
}

// selector returns import path and name of a qualified identifier such as os.Open.
func (f *file) selector(n ast.Node) (importPath, name string, ok bool) {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	importPath, ok = f.imports[x.Name]
	return importPath, sel.Sel.Name, ok
}

// buildTags returns the build constraint of a file, or nil.
func (f *file) buildTags() constraint.Expr {
	for _, group := range f.syntax.Comments {
		if group.Pos() > f.syntax.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			if expr, err := constraint.Parse(c.Text); err == nil {
				return expr
			}
		}
	}
	return nil
}

// funcName names a function for people and for the exception list: Name or Type.Name.
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	return receiverName(d.Recv.List[0].Type) + "." + d.Name.Name
}

// receiverName is the name of a receiver's type without pointer and type parameters.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	}
	return "?"
}

// below tells whether a directory is one of dirs or below it.
func below(dir string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return dir == d || strings.HasPrefix(dir, d+"/") })
}
