package spelling_test

import (
	"testing"

	"github.com/conch-dev/conch/controllers/spelling"
)

func TestNearest(t *testing.T) {
	known := []string{"singleton", "lock", "override"}
	for name, tc := range map[string]struct{ word, want string }{
		"letters swapped":   {"singelton", "singleton"},
		"one letter gone":   {"singlton", "singleton"},
		"another case":      {"Lock", "lock"},
		"a dash within":     {"single-ton", "singleton"},
		"the beginning":     {"over", "override"},
		"something unknown": {"replicas", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spelling.Nearest(tc.word, known); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
