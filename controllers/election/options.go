package election

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// DefaultLeaseDuration, DefaultRenewDeadline and DefaultRetryPeriod are those of Kubernetes' own
	// components: a decider that is killed is replaced within about 16 seconds, and one that cannot
	// reach the API server stops deciding after 10.
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second

	maxIdentityBytes = 300
)

// Leases is the part of client-go's LeaseInterface that an election needs. It should have a client
// of its own: renewals must not queue behind other requests.
type Leases interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Options are everything that an Election needs.
type Options struct {
	// Leases reaches the namespace of the Lease, and Name names it.
	Leases Leases
	Name   string
	// Identity must differ between any two processes, also between a process and its restart.
	Identity string
	// LeaseDuration, RenewDeadline and RetryPeriod; the defaults above where zero.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.LeaseDuration == 0 {
		o.LeaseDuration = DefaultLeaseDuration
	}
	if o.RenewDeadline == 0 {
		o.RenewDeadline = DefaultRenewDeadline
	}
	if o.RetryPeriod == 0 {
		o.RetryPeriod = DefaultRetryPeriod
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Validate reports everything that does not fit.
func (o Options) Validate() error {
	o = o.withDefaults()
	var problems []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("election: "+format, args...))
		}
	}
	need(o.Leases != nil, "a client for Leases is missing")
	need(o.Name != "", "the name of the Lease is missing")
	need(o.Identity != "" && len(o.Identity) <= maxIdentityBytes, "identity must have 1 to %d bytes", maxIdentityBytes)
	need(!strings.Contains(o.Identity, deciderSeparator), "identity must not contain %q", deciderSeparator)
	need(o.LeaseDuration >= time.Second && o.LeaseDuration%time.Second == 0,
		"lease duration %s: write whole seconds, as the Lease stores them", o.LeaseDuration)
	need(o.RenewDeadline < o.LeaseDuration, "renew deadline %s must be below lease duration %s", o.RenewDeadline, o.LeaseDuration)
	need(o.RetryPeriod > 0 && 2*o.RetryPeriod <= o.RenewDeadline,
		"retry period %s: at least two must fit into renew deadline %s", o.RetryPeriod, o.RenewDeadline)
	return errors.Join(problems...)
}
