package verify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// impure are standard packages that a decision must not depend on. What it needs to know it gets as
// values, so that a table can hold every case.
var impure = []string{"context", "io", "log", "log/slog", "math/rand", "math/rand/v2", "net", "os", "sync", "sync/atomic"}

// clock are the functions of package time that look at the clock or wait for it.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

func TestPlanHasNoClockNoGoroutineAndNoIO(t *testing.T) {
	files, err := filepath.Glob("../../controllers/plan/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("controllers/plan has no files: %v", err)
	}
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		checkImports(t, fset, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if why := impurity(n); why != "" {
				t.Errorf("%s: a decision must not %s", fset.Position(n.Pos()), why)
			}
			return true
		})
	}
}

func checkImports(t *testing.T, fset *token.FileSet, file *ast.File) {
	t.Helper()
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(impure, path) {
			t.Errorf("%s: a decision must not import %s", fset.Position(imp.Pos()), path)
		}
	}
}

func impurity(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "start a goroutine"
	case *ast.ChanType:
		return "use a channel"
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
			return "call time." + n.Sel.Name
		}
	}
	return ""
}
