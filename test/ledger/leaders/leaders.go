// Package leaders is the oracle of leader mode: it follows the label of leaders in one watch and judges by resourceVersion, so that no
// clock and no cache stands between it and what the API server held at each moment.
package leaders

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What conch writes on pods. Written out here, because an oracle must not follow a change by mistake.
const (
	roleSelector    = "conch.dev/role=leader"
	keyAnnotation   = "conch.dev/key"
	lockAnnotation  = "conch.dev/lock"
	tokenAnnotation = "conch.dev/fencing-token"
)

// Span is the time that a pod bore the label, in resourceVersions.
type Span struct {
	Key   string
	Pod   string
	UID   types.UID
	Token int64  // at the start of the span; 0 if there was none
	From  string // the first resourceVersion with the label
	To    string // the first without; empty while it has it
}

// Leaders keeps the spans of all locks of a namespace.
type Leaders struct {
	mu         sync.Mutex // guards the rest
	spans      []Span
	violations []error
	gaps       int
}

// Spans returns the spans of a key in the order of their starts.
func (l *Leaders) Spans(key string) []Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Span
	for _, s := range l.spans {
		if s.Key == key {
			found = append(found, s)
		}
	}
	return found
}

// Gaps counts the times that the watch could not go on where it ended, after an API server was away. What happened in a gap is not
// judged; the states at both of its ends are.
func (l *Leaders) Gaps() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gaps
}

// Check joins the moments with two leaders of a lock, and leaders without a token or with one that did not rise.
func (l *Leaders) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.violations...)
}

// labelled notes that a pod bears the label at the pod's resourceVersion. The caller holds mu.
func (l *Leaders) labelled(pod *corev1.Pod) {
	if slices.ContainsFunc(l.spans, func(s Span) bool { return s.UID == pod.UID && s.To == "" }) {
		return
	}
	key, token := keyOf(pod), tokenOf(pod)
	highest := int64(0)
	for _, s := range l.spans {
		if s.Key != key {
			continue
		}
		if s.To == "" {
			l.violate("key %s: at resourceVersion %s both %s (since %s) and %s bear the label", key, pod.ResourceVersion, s.Pod, s.From, pod.Name)
		}
		if s.UID != pod.UID {
			highest = max(highest, s.Token)
		}
	}
	switch {
	case token == 0:
		l.violate("key %s: at resourceVersion %s %s leads without a fencing token", key, pod.ResourceVersion, pod.Name)
	case token <= highest:
		l.violate("key %s: at resourceVersion %s %s leads with token %d, but %d was used before", key, pod.ResourceVersion, pod.Name, token, highest)
	}
	l.spans = append(l.spans, Span{Key: key, Pod: pod.Name, UID: pod.UID, Token: token, From: pod.ResourceVersion})
}

// unlabelled notes that a pod does not bear the label any more. The caller holds mu.
func (l *Leaders) unlabelled(uid types.UID, resourceVersion string) {
	for i := range l.spans {
		if l.spans[i].UID == uid && l.spans[i].To == "" {
			l.spans[i].To = resourceVersion
		}
	}
}

// snapshot takes over a list: what all pods were at one resourceVersion. The caller holds mu.
func (l *Leaders) snapshot(pods []corev1.Pod, resourceVersion string) {
	for _, s := range slices.Clone(l.spans) {
		if s.To == "" && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == s.UID }) {
			l.unlabelled(s.UID, resourceVersion)
		}
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(tokenOf(&a), tokenOf(&b)) })
	for i := range pods {
		l.labelled(&pods[i])
	}
}

func (l *Leaders) violate(format string, args ...any) {
	l.violations = append(l.violations, fmt.Errorf(format, args...))
}

// keyOf names the lock. Pods that name none count as candidates of one.
func keyOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Annotations[keyAnnotation], pod.Annotations[lockAnnotation], "(none)")
}

func tokenOf(pod *corev1.Pod) int64 {
	token, err := strconv.ParseInt(pod.Annotations[tokenAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return token
}
