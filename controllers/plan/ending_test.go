package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

func hold(s *plan.Snapshot) { s.Lock.HoldOnLoss = true }

func another(c plan.Candidate) func(*plan.Snapshot) {
	return func(s *plan.Snapshot) { s.Candidates = append(s.Candidates, c) }
}

func notReadyFor(d time.Duration) func(*plan.Snapshot) {
	return first(func(c *plan.Candidate) { c.Ready, c.ReadySince = false, in(-d) })
}

func continuing(p plan.Presence) func(*plan.Snapshot) {
	return func(s *plan.Snapshot) {
		s.Store = plan.Store{Phase: plan.Asking, Continuing: true, KeptSince: now, Answered: true}
		s.Store.Seen.Presence = p
	}
}

// TestLosingTheLock: cases C29, C35, C63.
func TestLosingTheLock(t *testing.T) {
	runSteps(t, map[string]step{
		"another cluster has the key":             {from: running, change: lost(plan.Away), want: ended(plan.LockLost)},
		"another lock of this cluster has it":     {from: running, change: lost(plan.Beside), want: ended(plan.LockLost)},
		"another attempt of this lock has it":     {from: running, change: lost(plan.Here), want: ended(plan.LockLost)},
		"something foreign has it":                {from: running, change: lost(plan.Foreign), want: ended(plan.LockLost)},
		"nobody can say who has it":               {from: running, change: lost(plan.Unseen), want: ended(plan.LockLost)},
		"Hold does not help against another":      {from: running, change: all(hold, lost(plan.Away)), want: ended(plan.LockLost)},
		"somebody came between":                   {from: running, change: all(lost(plan.Free), func(s *plan.Snapshot) { s.Store.Continuing = true }), want: ended(plan.LockLost)},
		"another takes it while it is asked for":  {from: running, change: continuing(plan.Away), want: ended(plan.LockLost)},
		"also under Hold":                         {from: running, change: all(continuing(plan.Foreign), hold), want: ended(plan.LockLost)},
		"it was given back under the holder":      {from: running, change: func(s *plan.Snapshot) { s.Store.Phase = plan.GivenBack }, want: ended(plan.LockLost)},
		"a vanished holder cannot continue":       {from: running, change: all(lost(plan.Free), first(func(c *plan.Candidate) { vanish(c, 0) })), want: ended(plan.LockLost)},
		"no answer to the continuation in time":   {from: running, change: all(continuing(plan.Unseen), func(s *plan.Snapshot) { s.Store.KeptSince = in(-fenceGrace) }), want: ended(plan.BackendLost)},
		"no answer in time":                       {from: running, change: all(unanswered, dueIn(0)), want: ended(plan.BackendLost)},
		"no answer in time for one not started":   {from: acquired, change: all(unanswered, dueIn(0)), want: ended(plan.BackendLost)},
		"no answer since this process began":      {from: running, change: all(unanswered, func(s *plan.Snapshot) { s.Store.ValidUntil, s.Store.KeptSince = time.Time{}, in(-fenceGrace) }), want: ended(plan.BackendLost)},
		"no backend to ask":                       {from: running, change: func(s *plan.Snapshot) { s.Store = plan.Store{KeptSince: in(-fenceGrace)} }, want: ended(plan.BackendLost)},
		"a leader loses in the same way":          {from: leading, change: lost(plan.Away), want: ended(plan.LockLost)},
		"a holder that is leaving is not let off": {from: running, change: all(lost(plan.Away), first(func(c *plan.Candidate) { deleting(c, time.Minute) })), want: ended(plan.LockLost)},
	})
}

// TestNotLosingTheLock: case C25, and promise 4.
func TestNotLosingTheLock(t *testing.T) {
	runSteps(t, map[string]step{
		"before the deadline the holder works on": {
			from: running, change: all(unanswered, dueIn(time.Second)),
			want: held(outcome{Reason: plan.Running, Revisit: time.Second}),
		},
		"past the deadline one more renewal must have failed": {
			from: running, change: dueIn(-time.Second), want: held(outcome{Reason: plan.Running}),
		},
		"under Hold the holder works on without a store": {
			from: running, change: all(hold, unanswered, dueIn(-time.Hour)), want: held(outcome{Reason: plan.Running}),
		},
		"under Hold one that was not started waits": {
			from: acquired, change: all(hold, unanswered, dueIn(-time.Hour)),
			want: held(outcome{Reason: plan.CannotTell, Revisit: renewInterval}),
		},
		"a process that has just begun gives the store its time": {
			from: running, change: all(unanswered, func(s *plan.Snapshot) { s.Store.ValidUntil, s.Store.KeptSince = time.Time{}, in(-time.Second) }),
			want: held(outcome{Reason: plan.Running, Revisit: fenceGrace - time.Second}),
		},
	})
}

func TestEndingATenure(t *testing.T) {
	newer := gated("web-2", time.Minute)
	newer.Revision = 2
	newerLeader := standby("web-3", time.Second)
	newerLeader.Revision = 2
	othersNewer := newer
	othersNewer.Group = "batch"
	resting := newer
	resting.BackOffUntil = in(time.Minute)
	awaited := func(s *plan.Snapshot) { s.Store.Awaited = true }
	runSteps(t, map[string]step{
		"the lock is deleted":                      {from: running, change: func(s *plan.Snapshot) { s.Lock.Gone = true }, want: ended(plan.LockDeleted)},
		"the lock is deleted while a pod stops":    {from: running, change: all(func(s *plan.Snapshot) { s.Lock.Gone = true }, first(func(c *plan.Candidate) { deleting(c, podGrace) })), want: ended(plan.LockDeleted)},
		"an operator asks for the release":         {from: running, change: func(s *plan.Snapshot) { s.Lock.ReleaseAsked = token }, want: ended(plan.ReleaseRequested)},
		"the longest hold is over":                 {from: running, change: func(s *plan.Snapshot) { s.Lock.MaxHold = time.Hour }, want: ended(plan.MaxHoldReached)},
		"a newer revision waits":                   {from: running, change: another(newer), want: ended(plan.HandOver)},
		"a newer revision of another owner":        {from: running, change: another(othersNewer), want: held(outcome{Reason: plan.Running})},
		"a newer revision that backs off":          {from: running, change: another(resting), want: held(outcome{Reason: plan.Running})},
		"an equal revision":                        {from: running, change: another(gated("web-2", 2*time.Hour)), want: held(outcome{Reason: plan.Running})},
		"a newer leader":                           {from: leading, change: another(newerLeader), want: held(outcome{Reason: plan.Running})},
		"a drain, and another cluster waits":       {from: running, change: all(awaited, func(s *plan.Snapshot) { s.Self.Contending = false }), want: ended(plan.Draining)},
		"another cluster waits, and no drain":      {from: running, change: awaited, want: held(outcome{Reason: plan.Running})},
		"not running for long, another waits":      {from: running, change: all(notReadyFor(startDeadline), another(gated("web-2", time.Minute))), want: ended(plan.StartDeadline)},
		"not running for long, one waits away":     {from: running, change: all(notReadyFor(startDeadline), awaited), want: ended(plan.StartDeadline)},
		"not running for long, nobody waits":       {from: running, change: notReadyFor(startDeadline), want: held(outcome{Reason: plan.Running})},
		"not running for a while":                  {from: running, change: all(notReadyFor(time.Minute), another(gated("web-2", time.Minute))), want: held(outcome{Reason: plan.Running, Revisit: 4 * time.Minute})},
		"not running since it got the lock":        {from: acquired, change: all(another(gated("web-2", time.Minute)), func(s *plan.Snapshot) { s.Status.AcquiredAt = in(-startDeadline) }), want: ended(plan.StartDeadline)},
		"waiting until the one before is over":     {from: settling, change: all(another(gated("web-2", time.Minute)), func(s *plan.Snapshot) { s.Status.AcquiredAt = in(-startDeadline) }), want: outcome{State: plan.Settling, Holder: "web-1", Fencing: token, Reason: plan.Contending, Revisit: takeoverDelay}},
		"the leader is not ready, another is":      {from: leading, change: notReadyFor(15 * time.Second), want: ended(plan.LeaderNotReady)},
		"the leader was ready a moment ago":        {from: leading, change: notReadyFor(14 * time.Second), want: held(outcome{Reason: plan.Running, Revisit: time.Second})},
		"no other leader is ready":                 {from: leading, change: all(notReadyFor(time.Minute), func(s *plan.Snapshot) { s.Candidates[1].Ready = false }), want: held(outcome{Reason: plan.Running, Revisit: 4 * time.Minute})},
		"a pod that the kubelet refused":           {from: running, change: first(func(c *plan.Candidate) { c.Body.Terminal, c.Ready = true, false }), want: ended(plan.HolderGone)},
		"the node of the holder is gone":           {from: running, change: first(func(c *plan.Candidate) { c.Body.Node = plan.Node{Gone: true} }), want: ended(plan.HolderGone)},
		"the node of the holder is out of service": {from: running, change: first(func(c *plan.Candidate) { c.Body.Node = plan.Node{OutOfService: true} }), want: ended(plan.HolderGone)},
		"an operator confirms the death":           {from: running, change: func(s *plan.Snapshot) { s.Lock.DeadConfirmed = token }, want: ended(plan.HolderGone)},
	})
}

func TestAHolderThatHasStoppedGivesTheKeyBack(t *testing.T) {
	gone := outcome{State: plan.Releasing, Ending: plan.HolderGone, Holder: "web-1", Fencing: token, Reason: plan.HolderGone}
	runSteps(t, map[string]step{
		"completed, failed or evicted (C95)": {
			from: running, change: first(func(c *plan.Candidate) { c.Body.Terminal, c.Body.Stopped = true, true }), want: gone,
		},
		"deleted and terminated": {
			from: running, change: first(func(c *plan.Candidate) {
				deleting(c, 0)
				c.Body.Stopped = true
			}), want: gone,
		},
		"removed by force, its grace over": {
			from: running, change: first(func(c *plan.Candidate) { vanish(c, podGrace+fenceGrace) }), want: gone,
		},
		"removed by force a moment ago": {
			from: running, change: first(func(c *plan.Candidate) { vanish(c, 0) }),
			want: held(outcome{Reason: plan.Unreachable, Revisit: podGrace + fenceGrace}),
		},
		"a vanished holder is not ended for a revision that waits": {
			from: running, change: first(func(c *plan.Candidate) {
				vanish(c, 0)
				unready(c)
			}),
			want: held(outcome{Reason: plan.Unreachable}),
		},
		"a holder of which nothing is known is waited for": {
			from: running, change: func(s *plan.Snapshot) { s.Candidates, s.Lock.ReleaseLost = nil, true },
			want: held(outcome{Reason: plan.Unreachable}),
		},
	})
}
