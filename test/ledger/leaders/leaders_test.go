package leaders

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func leader(name, key string, token, resourceVersion int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(resourceVersion),
		Annotations: map[string]string{keyAnnotation: key, tokenAnnotation: strconv.Itoa(token)},
	}}
}

func TestLeadersAreJudgedByResourceVersion(t *testing.T) {
	t.Parallel()
	type events []watch.Event
	added := func(p *corev1.Pod) watch.Event { return watch.Event{Type: watch.Added, Object: p} }
	modified := func(p *corev1.Pod) watch.Event { return watch.Event{Type: watch.Modified, Object: p} }
	deleted := func(p *corev1.Pod) watch.Event { return watch.Event{Type: watch.Deleted, Object: p} }
	tests := map[string]struct {
		events events
		want   []string
	}{
		"one leader after the other is clean": {events: events{
			added(leader("a", "k", 5, 10)), modified(leader("a", "k", 5, 11)), deleted(leader("a", "k", 5, 12)), added(leader("b", "k", 6, 13)),
		}},
		"leaders of two locks are clean": {events: events{added(leader("a", "k", 5, 10)), added(leader("b", "other", 5, 11))}},
		"two at one resourceVersion are found once": {
			events: events{added(leader("a", "k", 5, 10)), added(leader("b", "k", 6, 11)), modified(leader("b", "k", 6, 12)), deleted(leader("a", "k", 5, 13))},
			want:   []string{"at resourceVersion 11 both a (since 10) and b"},
		},
		"a leader that returns with its own token is clean": {events: events{
			added(leader("a", "k", 5, 10)), deleted(leader("a", "k", 5, 11)), added(leader("a", "k", 5, 12)),
		}},
		"a token that did not rise is found": {
			events: events{added(leader("a", "k", 5, 10)), deleted(leader("a", "k", 5, 11)), added(leader("b", "k", 5, 12))},
			want:   []string{"b leads with token 5, but 5 was used before"},
		},
		"a leader without a token is found": {
			events: events{added(leader("a", "k", 0, 10))},
			want:   []string{"a leads without a fencing token"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &Leaders{}

			for _, e := range tc.events {
				l.note(e)
			}

			expectComplaints(t, l.Check(), tc.want)
		})
	}
}

func expectComplaints(t *testing.T, err error, want []string) {
	t.Helper()
	var lines []string
	if err != nil {
		lines = strings.Split(err.Error(), "\n")
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d complaints, want %d: %v", len(lines), len(want), err)
	}
	for i, part := range want {
		if !strings.Contains(lines[i], part) {
			t.Errorf("complaint %q does not say %q", lines[i], part)
		}
	}
}

func TestAListEndsTheSpansOfThoseThatAreNotInIt(t *testing.T) {
	t.Parallel()
	l := &Leaders{}
	l.snapshot([]corev1.Pod{*leader("a", "k", 5, 10)}, "10")

	l.snapshot([]corev1.Pod{*leader("b", "k", 6, 20)}, "21")

	expectComplaints(t, l.Check(), nil)
	if got := l.Spans("k"); len(got) != 2 || got[0].To != "21" || got[1].To != "" {
		t.Errorf("spans are %+v", got)
	}
}
