package settings

import (
	"strings"

	"github.com/conch-dev/conch/controllers/spelling"
)

// instead says what to write for a name that is not a field.
func instead(name string, known []string, hints map[string]string) string {
	if hint := hints[strings.ToLower(name)]; hint != "" {
		return hint
	}
	if n := spelling.Nearest(name, known); n != "" {
		return "did you mean " + n + "?"
	}
	return "remove it; there are " + strings.Join(known, ", ")
}
