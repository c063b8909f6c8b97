// Package scale holds many locks with one deployment of conch and looks at what that costs everybody
// else: the API server is not written to, Redis keeps every key, and the log stays empty.
package scale

import (
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/rig"
)

var scheme = runtime.NewScheme()

func TestMain(m *testing.M) {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, lockv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		rig.Clean()
		os.Exit(code)
	}))
}

// soaking tells that full counts are wanted, whatever they take.
func soaking() bool { return os.Getenv("CONCH_SOAK") != "" }
