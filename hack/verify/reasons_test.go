package verify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unseen are reasons of plan that never reach a status: such a pass reports nothing.
var unseen = map[string]bool{"NotDeciding": true}

// Whatever may stand in a condition is documented where users look it up.
func TestEveryReasonIsDocumentedInTheAPI(t *testing.T) {
	documented := constants(t, "../../api/v1alpha1", "Reason")
	pascal := regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	for value, name := range documented {
		if !pascal.MatchString(value) {
			t.Errorf("%s = %q is not one PascalCase word", name, value)
		}
	}
	for _, dir := range []string{"../../controllers/plan", "../../pkg/lock"} {
		for value, name := range typedConstants(t, dir, "Reason") {
			if documented[value] == "" && !unseen[value] {
				t.Errorf("%s has %s = %q: add Reason%s to api/v1alpha1/conditions.go", dir, name, value, value)
			}
		}
	}
}

// constants maps the values of string constants whose names begin with prefix to those names.
func constants(t *testing.T, dir, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	eachConstant(t, dir, func(spec *ast.ValueSpec) {
		for i, name := range spec.Names {
			if i < len(spec.Values) && strings.HasPrefix(name.Name, prefix) {
				out[text(spec.Values[i])] = name.Name
			}
		}
	})
	return out
}

// typedConstants maps the values of string constants of a named type to their names.
func typedConstants(t *testing.T, dir, typ string) map[string]string {
	t.Helper()
	out := map[string]string{}
	eachConstant(t, dir, func(spec *ast.ValueSpec) {
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typ && len(spec.Values) == 1 {
			out[text(spec.Values[0])] = spec.Names[0].Name
		}
	})
	if len(out) == 0 {
		t.Fatalf("%s has no constants of type %s", dir, typ)
	}
	return out
}

func eachConstant(t *testing.T, dir string, visit func(*ast.ValueSpec)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok {
					visit(value)
				}
			}
		}
	}
}

func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}
