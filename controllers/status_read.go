package controllers

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// readStatus translates an object's status into what plan decides by.
func readStatus(l *lockv1alpha1.DistributedLock) plan.Status {
	s := l.Status
	st := plan.Status{
		State: plan.State(s.State), Token: s.Token, FencingToken: s.FencingToken, HighestSeen: s.HighestSeen,
		AcquiredAt: timeOf(s.AcquiredAt), NotBefore: timeOf(s.NotBefore), StartedAt: timeOf(s.StartedAt),
	}
	if st.State == "" {
		st.State = plan.Idle
	}
	if h := s.Holder; h != nil {
		st.Holder = plan.Holder{
			Cluster: h.Cluster, Namespace: l.Namespace, Kind: h.Kind, Name: h.Name, UID: string(h.UID),
			Owner: h.Identity, Node: h.Node, BootID: h.BootID, Grace: time.Duration(h.GracePeriodSeconds) * time.Second,
		}
	}
	if st.Token == "" && st.FencingToken != 0 && st.Holder.Owner != "" {
		// Somebody removed it by hand. It is made of the two, and a release compares all of it anyway.
		st.Token = fmt.Sprintf("%s#%d", st.Holder.Owner, st.FencingToken)
	}
	if st.State == plan.Fencing || st.State == plan.Releasing {
		if c := meta.FindStatusCondition(s.Conditions, lockv1alpha1.ConditionHeld); c != nil {
			st.Ending = plan.Reason(c.Reason)
		}
		c := meta.FindStatusCondition(s.Conditions, lockv1alpha1.ConditionFenced)
		st.Unclean = c != nil && c.Reason == lockv1alpha1.ReasonUnconfirmed
	}
	return st
}

// timeOf reads a time of day off the API. It has no monotonic part, which is right: it may have
// been written by another process on another machine.
func timeOf(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewMicroTime(t)
	return &m
}
