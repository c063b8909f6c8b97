// Package verify checks the architecture: who may import whom, and that decisions stay pure. It needs
// nothing but the go command.
package verify

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/conch-dev/conch/"

// rule says what a package and those below it may import besides the standard library, and what must
// not be reached from it even through others. The longest matching path decides.
type rule struct {
	path string
	// may are paths that it may import itself; std alone if empty, everything if "*".
	may []string
	// never are paths that no import of it may lead to.
	never []string
}

const (
	apis       = module + "api"
	lock       = module + "pkg/lock"
	keeper     = module + "pkg/lock/keeper"
	redisnode  = module + "pkg/lock/redisnode"
	redlock    = module + "pkg/lock/redlock"
	tests      = module + "test"
	hack       = module + "hack"
	goRedis    = "github.com/redis/go-redis"
	prometheus = "github.com/prometheus"
	runtime    = "sigs.k8s.io/controller-runtime"
)

var kubernetes = []string{"k8s.io", "sigs.k8s.io", "github.com/go-logr/logr"}

// rules follow the layers of docs/architecture.md. go-redis has one importer, and Kubernetes is known
// to the API, the controllers and the commands only.
var rules = []rule{
	{path: "pkg/lock"},
	{path: "pkg/lock/memory", may: []string{lock}},
	{path: "pkg/lock/redlock", may: []string{lock}},
	{path: "pkg/lock/keeper", may: []string{lock}},
	{path: "pkg/lock/locktest", may: []string{lock}, never: []string{redisnode, redlock, goRedis, "k8s.io"}},
	{path: "pkg/lock/redisnode", may: []string{lock, goRedis}, never: []string{"k8s.io", "sigs.k8s.io", prometheus}},
	{path: "pkg/lock/lockprom", may: []string{lock, prometheus}, never: []string{"k8s.io", "sigs.k8s.io", goRedis}},
	{path: "api", may: []string{"k8s.io/apimachinery"}, never: []string{"k8s.io/client-go", runtime, goRedis}},
	{path: "controllers/plan"},
	{
		path:  "controllers",
		may:   append([]string{module + "controllers", apis, lock, keeper, prometheus}, kubernetes...),
		never: []string{goRedis, redisnode, redlock, module + "cmd", tests},
	},
	{path: "cmd", may: []string{"*"}, never: []string{tests, hack}},
	{path: "test", may: []string{"*"}},
	{path: "hack", may: []string{"*"}},
}

// pkg is what `go list` tells of a package.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func TestPackagesImportOnlyWhatTheirLayerMay(t *testing.T) {
	all := list(t)
	for path, p := range all {
		own, ok := strings.CutPrefix(path, module)
		if !ok {
			continue
		}
		r, ok := ruleFor(own)
		if !ok {
			t.Errorf("%s has no layer: add a rule for it here", path)
			continue
		}
		for _, imp := range p.Imports {
			if q, known := all[imp]; known && q.Standard || imp == "C" || allowed(r.may, imp) {
				continue
			}
			t.Errorf("%s imports %s: its layer may import the standard library and %v", path, imp, r.may)
		}
		for _, dep := range p.Deps {
			if slices.ContainsFunc(r.never, func(n string) bool { return under(dep, n) }) {
				t.Errorf("%s reaches %s, which its layer must not", path, dep)
			}
		}
	}
}

func ruleFor(own string) (rule, bool) {
	var best rule
	found := false
	for _, r := range rules {
		if under(own, r.path) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

// allowed treats the lock package by its exact path: the packages below it are layers of their own.
func allowed(may []string, imp string) bool {
	for _, m := range may {
		if m == "*" || m == imp || m != lock && under(imp, m) {
			return true
		}
	}
	return false
}

func under(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }

// list asks the go command for every package of this module and all that they lead to.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("read the answer of go list: %v", err)
		}
		all[p.ImportPath] = p
	}
}
