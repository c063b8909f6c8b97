package election_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/conch-dev/conch/test/cluster"
)

var clusters cluster.Pair

func TestMain(m *testing.M) { goleak.VerifyTestMain(clusters.Around(m)) }
