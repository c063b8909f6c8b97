package plan

import "time"

// Concurrency is what a CronJob says about runs that would overlap.
type Concurrency string

const (
	// Allow lets runs overlap: each has its tick and nothing else.
	Allow Concurrency = "Allow"
	// Forbid has a run wait for the one before.
	Forbid Concurrency = "Forbid"
	// Replace ends the run before.
	Replace Concurrency = "Replace"
)

// Stage is how far a tick has come in the store.
type Stage string

const (
	Unclaimed      Stage = ""
	StageClaimed   Stage = "claimed"
	StageStarted   Stage = "started"
	StageSucceeded Stage = "succeeded"
	StageFailed    Stage = "failed"
)

func (s Stage) begun() bool { return s == StageStarted || s.over() }
func (s Stage) over() bool  { return s == StageSucceeded || s == StageFailed }

// Outcome is what the status says about a tick of this cluster.
type Outcome string

const (
	// NotNoted: nothing yet. The Job waits, or claims.
	NotNoted Outcome = ""
	// Begun: the store says that this cluster started it.
	Begun Outcome = "started"
	// Halting: a run that has no lock beside its tick is being stopped.
	Halting Outcome = "stopping"
	// PuttingBack: it was started and nothing of it ever ran, so that it is given back.
	PuttingBack Outcome = "waiting"
	// Succeeded, Failed and Skipped are final.
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Skipped   Outcome = "skipped"
)

// Final reports whether nothing more comes of the tick in this cluster.
func (o Outcome) Final() bool { return o == Succeeded || o == Failed || o == Skipped }

// TickNote is the entry of a tick in the status.
type TickNote struct {
	Outcome Outcome
	// Owner, Token and FencingToken are those of the tick where this cluster started it.
	Owner        string
	Token        string
	FencingToken int64
	// Where names the cluster that runs a tick which was skipped here.
	Where string
	Why   Reason
	// Message explains the outcome to people.
	Message string
	// Spent is the fencing token of a run that came to nothing, so that the tick was put back.
	Spent int64
	At    time.Time
}

// TickStore is what is known about the tick's own record, from the keeper's entry for its Job.
type TickStore struct {
	Phase        Phase
	Stage        Stage
	Owner        string
	Token        string
	FencingToken int64
	ValidUntil   time.Time
	NotBefore    time.Time
	// Stamping is the stage that was ordered and is not answered yet.
	Stamping Stage
	// TooOld says why the store refuses the tick, empty if it does not.
	TooOld Reason
	// Answered is false while the last word of the store is missing.
	Answered bool
	// Seen is who was last seen to have the tick, SeenStage how far it came there, and Newest the newest
	// minute that the store knows to have been started.
	Seen      Seen
	SeenStage Stage
	Newest    int64
}

// Tenure is where the Job of a tick stands towards the plain lock.
type Tenure struct {
	// Holding is true from when the status names the Job as holder until the key is given back.
	Holding bool
	// Cleared is true while it holds and nothing but the tick is in the way of its start.
	Cleared bool
	// Stopped is true once the status says that its processes have ended, and the key is being given back.
	Stopped bool
	// Ending is why the status says that its tenure is over or, after that, was.
	Ending Reason
}

// TickSnapshot is all that one decision about a tick is based on.
type TickSnapshot struct {
	Lock Lock
	Self Self
	// Job is the run. Succeeded tells how it ended, once it is terminal.
	Job       Candidate
	Succeeded bool
	// Sighted is true unless nothing of the Job's newest run can have gone by unseen, and no process of it ran.
	Sighted bool
	Minute  int64
	Policy  Concurrency
	// StartBy is when the CronJob's startingDeadlineSeconds are over; zero for never.
	StartBy time.Time
	Store   TickStore
	Note    TickNote
	Tenure  Tenure
	// Awaited is true while it holds and a candidate of another cluster waits for the lock.
	Awaited bool
}

// TickActionKind names the one effect of a decision about a tick.
type TickActionKind string

const (
	NoTickAction TickActionKind = ""
	// Claim: begin to ask for the tick.
	Claim TickActionKind = "Claim"
	// Unclaim: stop asking, or give a claim back.
	Unclaim TickActionKind = "Unclaim"
	// Stamp: bring the tick to a stage.
	Stamp TickActionKind = "Stamp"
	// PutBack: give back what was started and never ran.
	PutBack TickActionKind = "PutBack"
	// Drop: forget the keeper's entry.
	Drop TickActionKind = "Drop"
	// DeleteJob: delete the suspended Job and whatever is left of it.
	DeleteJob TickActionKind = "DeleteJob"
	// Run: carry out Effect on the Job, which runs without a plain lock.
	Run TickActionKind = "Run"
)

// TickDecision is what to do about a tick and what to note after it.
type TickDecision struct {
	Kind  TickActionKind
	Stage Stage
	// Effect is what to do to the Job, under Status.
	Effect Action
	Status Status
	// Note replaces the snapshot's, once the effect has succeeded.
	Note TickNote
	// Pending keeps the Job from contending for the plain lock or, if it has that, from being started.
	// Withdrawn ends its tenure, and Replaced does so for a newer run of another cluster. Unsaid keeps the plain
	// lock until the outcome stands in the store.
	Pending   bool
	Withdrawn bool
	Replaced  bool
	Unsaid    bool
	Reason    Reason
	Message   string
	Revisit   time.Duration
}

// Reasons that only ticks have.
const (
	TickElsewhere  Reason = "RunsElsewhere"
	TickSuperseded Reason = "Superseded"
	TickTooOld     Reason = "TooOld"
	TickLate       Reason = "StartingDeadlineExceeded"
	TickLost       Reason = "LostAfterStart"
	TickDeleted    Reason = "JobDeleted"
	TickClaimed    Reason = "Claimed"
	TickStarted    Reason = "Started"
	TickEnded      Reason = "Ended"
)

// tickLook is how soon to look again where nothing tells of the change.
const tickLook = time.Second
