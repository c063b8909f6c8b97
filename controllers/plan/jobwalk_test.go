package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// TestCompositeWalks: the same worlds with Jobs, whose controller lags behind, and with workloads all of
// whose pods run in one cluster. A pod that is removed by force while nobody looks is known to nobody, so
// those walks have conch running throughout.
func TestCompositeWalks(t *testing.T) {
	kube := []func(*world){askRelease, deletePod, breakNode, mendNode, rebootNode, loseNode, restartConch, unreadyPod}
	forced := []func(*world){askRelease, deletePod, removePod, breakNode, mendNode, unreadyPod}
	links := []func(*world){askRelease, deletePod, cutLink, mendLink, restartConch, unreadyPod}
	jobs := []func(*world){finishJob, deleteJob, suspendJob, stallJobs}
	with := func(more []func(*world), faults ...func(*world)) []func(*world) {
		return append(append([]func(*world){}, more...), faults...)
	}
	holding := func(l *plan.Lock) { l.HoldOnLoss = true }
	runWalks(t, map[string]walk{
		"while the store is well, one Job works whatever happens to clusters":    {kind: plan.KindJob, mode: plan.Exclusive, faults: with(jobs, kube...)},
		"a Job's pods that are removed by force are waited for":                  {kind: plan.KindJob, mode: plan.Exclusive, steady: true, faults: with(jobs, forced...)},
		"while nodes are well, one Job works though the store is cut off":        {kind: plan.KindJob, mode: plan.Exclusive, faults: with(jobs, links...)},
		"inside one cluster one Job works, whatever the store does":              {kind: plan.KindJob, mode: plan.Exclusive, alone: true, faults: with(jobs, with(kube, loseKey, loseStore, cutLink, mendLink)...), rules: holding},
		"a Job whose status is lost is known by itself":                          {kind: plan.KindJob, mode: plan.Exclusive, steady: true, faults: with(jobs, loseStatus, deletePod, askRelease, restartConch)},
		"a Job that is resumed by hand is found":                                 {kind: plan.KindJob, mode: plan.Exclusive, faults: []func(*world){resumeJob, deleteJob, restartConch}, overlap: 5 * time.Minute},
		"while the store is well, one cluster works whatever happens to them":    {kind: plan.KindDeployment, mode: plan.ActivePassive, faults: kube},
		"pods of a workload that are removed by force are waited for":            {kind: plan.KindDeployment, mode: plan.ActivePassive, steady: true, faults: forced},
		"while nodes are well, one cluster works though the store is cut off":    {kind: plan.KindDeployment, mode: plan.ActivePassive, faults: links},
		"inside one cluster one tenure works at a time, whatever the store does": {kind: plan.KindDeployment, mode: plan.ActivePassive, alone: true, faults: with(kube, loseKey, loseStore, cutLink, mendLink), rules: holding},
		"a workload whose status is lost is known by its pods":                   {kind: plan.KindDeployment, mode: plan.ActivePassive, steady: true, faults: []func(*world){loseStatus, deletePod, askRelease, restartConch}},
		"a pod of a workload that gets past its gate by hand is found":           {kind: plan.KindDeployment, mode: plan.ActivePassive, faults: []func(*world){bypass, deletePod, restartConch}, overlap: 5 * time.Minute},
	}, 60)
}
