package election_test

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestADeciderThatStepsDownHandsOverWithinTheNextLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		a := start(t, s, "a")
		synctest.Wait()
		b := start(t, s, "b")
		pass(5 * time.Second)
		if !a.StepDown() {
			t.Error("a did not step down")
		}
		if a.Deciding() {
			t.Error("a decides after it stepped down")
		}
		between(t, "the handover", until(t, time.Minute, b.Deciding), 0, time.Second)
		pass(time.Minute)
		if a.Deciding() || !b.Deciding() {
			t.Errorf("a decides: %t, b decides: %t", a.Deciding(), b.Deciding())
		}
	})
}

func TestAStoreThatIsAwayForAllPassesTheLeaseAroundOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		a := start(t, s, "a")
		synctest.Wait()
		b := start(t, s, "b")
		pass(5 * time.Second)
		a.StepDown()
		until(t, time.Minute, b.Deciding)
		b.StepDown()
		between(t, "getting it back", until(t, time.Minute, a.Deciding), 0, time.Second)
		if a.StepDown() {
			t.Error("a stepped down twice in one outage")
		}
		pass(time.Minute)
		if !a.Deciding() {
			t.Error("a does not decide")
		}
		a.Answered()
		if !a.StepDown() {
			t.Error("a did not step down in the next outage")
		}
	})
}

func TestAReplicaThatIsAloneDecidesAgainBeforeAnythingHasToBeFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, &store{}, "a")
		pass(5 * time.Second)
		a.StepDown()
		between(t, "the pause", until(t, time.Minute, a.Deciding), 2*time.Second, 3*time.Second)
	})
}

func TestAnAnswerOfTheStoreEndsThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, &store{}, "a")
		pass(5 * time.Second)
		epoch := a.Epoch()
		a.StepDown()
		pass(2 * time.Second)
		a.Answered()
		between(t, "the return", until(t, time.Minute, a.Deciding), 0, time.Second)
		if a.Epoch() != epoch+1 {
			t.Errorf("epoch %d after %d: a new term began", a.Epoch(), epoch)
		}
	})
}

func TestAReplicaThatDoesNotDecideHasNothingToStepDownFrom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		a := start(t, s, "a")
		synctest.Wait()
		b := start(t, s, "b")
		pass(5 * time.Second)
		if b.StepDown() {
			t.Error("b stepped down")
		}
		a.stop()
		until(t, time.Minute, b.Deciding)
		if !b.StepDown() {
			t.Error("the first call used up the outage")
		}
	})
}
