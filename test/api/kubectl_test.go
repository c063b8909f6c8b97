package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

func TestKubectlPrintsLocks(t *testing.T) {
	ns := namespace(t)
	setStatus(t, ns, create(t, ns, "mailer", `{ttl: 30s}`), heldStatus("mailer-7c9f6d5b8-x2k4q", ns))
	setStatus(t, ns, create(t, ns, "reports", `{rawKey: "reports:nightly"}`), lockv1alpha1.DistributedLockStatus{
		State: lockv1alpha1.StateWaiting, HighestSeen: 1796090413001, FencingToken: 1796090413001,
		Holder:    &lockv1alpha1.Holder{Cluster: "west", Kind: "Pod", Name: "reports-5f8b9c7d6-9vwzt"},
		Waiters:   &lockv1alpha1.Waiters{Count: 1, Names: []string{"reports-5f8b9c7d6-aaaaa"}, Reason: lockv1alpha1.ReasonHeldElsewhere},
		Effective: effective("reports:nightly", lockv1alpha1.ScopeRaw, time.Minute),
	})
	create(t, ns, "unseen", `{}`)

	golden(t, "get.txt", ages(kubectl(t, "-n", ns, "get", "dlock")))
	golden(t, "get-wide.txt", strings.ReplaceAll(ages(kubectl(t, "-n", ns, "get", "distributedlocks", "-o", "wide")), ns, "test-xxxxx"))
	if got := kubectl(t, "-n", ns, "get", "conch", "-o", "name"); strings.Count(got, "\n") != 3 {
		t.Errorf("the category conch has not all locks: %s", got)
	}
	if got := kubectl(t, "-n", ns, "get", "dlock", "--field-selector", "status.holder.cluster=west", "-o", "name"); got != "distributedlock.conch.dev/reports\n" {
		t.Errorf("locks that west holds: %q", got)
	}
}

func TestKubectlExplains(t *testing.T) {
	golden(t, "explain-recursive.txt", kubectl(t, "explain", "distributedlocks", "--recursive"))
	golden(t, "explain-spec.txt", kubectl(t, "explain", "distributedlocks.spec"))
	golden(t, "explain-status.txt", kubectl(t, "explain", "distributedlocks.status"))
}

// Every field of a spec says, to whoever asks kubectl, what unit it is in and what holds without it.
func TestEverySpecFieldNamesUnitAndDefault(t *testing.T) {
	fields := regexp.MustCompile(`(?m)^  (\w+)\t`).FindAllStringSubmatch(kubectl(t, "explain", "distributedlocks.spec"), -1)
	if len(fields) < 12 {
		t.Fatalf("found %d fields", len(fields))
	}
	units := regexp.MustCompile(`duration|bytes| is \w+ or \w+|true|names`)
	for _, f := range fields {
		text := strings.Join(strings.Fields(kubectl(t, "explain", "distributedlocks.spec."+f[1])), " ")
		if !strings.Contains(text, "Default: ") {
			t.Errorf("%s names no default: %s", f[1], text)
		}
		if !strings.Contains(text, "DESCRIPTION: "+f[1]+" ") || !units.MatchString(text) {
			t.Errorf("%s does not begin with its name or names no unit: %s", f[1], text)
		}
	}
}

func TestKubectlWaitsForALock(t *testing.T) {
	ns := namespace(t)
	name := create(t, ns, "patience", `{}`)
	done := make(chan error, 1)
	go func() {
		_, err := server.Kubectl(t.Context(), "-n", ns, "wait", "--for=condition=Held", "--timeout=20s", "dlock/"+name)
		done <- err
	}()
	setStatus(t, ns, name, heldStatus("worker-0", ns))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	kubectl(t, "-n", ns, "wait", "--for=jsonpath={.status.state}=Held", "--timeout=5s", "dlock/"+name)
}

func TestServerRefusesAStatusThatBreaksItsBounds(t *testing.T) {
	ns := namespace(t)
	name := create(t, ns, "bounds", `{}`)
	cases := map[string]lockv1alpha1.DistributedLockStatus{
		"an unknown state":     {State: "Pending"},
		"too long a history":   {History: make([]lockv1alpha1.Tenure, lockv1alpha1.MaxHistory+1)},
		"too many ticks":       {RecentTicks: make([]lockv1alpha1.Tick, lockv1alpha1.MaxRecentTicks+1)},
		"too many waiters":     {Waiters: &lockv1alpha1.Waiters{Names: make([]string, lockv1alpha1.MaxWaiterNames+1)}},
		"a token that is huge": {Token: strings.Repeat("x", 1025)},
	}
	for what, status := range cases {
		t.Run(what, func(t *testing.T) {
			if err := updateStatus(t, ns, name, status); err == nil {
				t.Error("accepted")
			}
		})
	}
	full := heldStatus("worker-0", ns)
	full.History = make([]lockv1alpha1.Tenure, lockv1alpha1.MaxHistory)
	if err := updateStatus(t, ns, name, full); err != nil {
		t.Errorf("a full status is refused: %v", err)
	}
}

func heldStatus(pod, ns string) lockv1alpha1.DistributedLockStatus {
	since := metav1.NewMicroTime(time.Now().Add(-3 * time.Hour))
	identity := fmt.Sprintf("east/%s/Pod/%s/0b1a/c0ffee", ns, pod)
	return lockv1alpha1.DistributedLockStatus{
		State: lockv1alpha1.StateHeld, FencingToken: 1796090412345, HighestSeen: 1796090412345, Token: identity + "#1796090412345",
		AcquiredAt: &since, StartedAt: &since, Tenures: 1,
		Holder:    &lockv1alpha1.Holder{Cluster: "east", Kind: "Pod", Name: pod, UID: "0b1a", Identity: identity, Node: "node-1", BootID: "b00t"},
		Waiters:   &lockv1alpha1.Waiters{Count: 2, Names: []string{"a", "b"}, Reason: lockv1alpha1.ReasonHeldHere},
		Effective: effective("east/"+ns+"/mailer", "east", 30*time.Second),
		Conditions: []metav1.Condition{{
			Type: lockv1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Reason: lockv1alpha1.ReasonAcquired, LastTransitionTime: metav1.Now(),
		}},
	}
}

func effective(key, scope string, ttl time.Duration) *lockv1alpha1.Effective {
	return &lockv1alpha1.Effective{
		Key: key, Scope: scope, Backend: "default", TTL: metav1.Duration{Duration: ttl}, OnBackendLoss: lockv1alpha1.BackendLossHold,
	}
}

func create(t *testing.T, ns, name, spec string) string {
	t.Helper()
	o := object(t, spec)
	o.SetName(name)
	if _, err := locks(t, ns).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

func setStatus(t *testing.T, ns, name string, status lockv1alpha1.DistributedLockStatus) {
	t.Helper()
	if err := updateStatus(t, ns, name, status); err != nil {
		t.Fatal(err)
	}
}

func updateStatus(t *testing.T, ns, name string, status lockv1alpha1.DistributedLockStatus) error {
	t.Helper()
	o, err := locks(t, ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(o.Object, plain(t, fields), "status"); err != nil {
		t.Fatal(err)
	}
	_, err = locks(t, ns).UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
	return err
}

// plain reduces values to what JSON has.
func plain(t *testing.T, v any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := server.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// age is the first number of seconds in a line, with the blanks that fill its column.
var age = regexp.MustCompile(`\b\d+s\b *`)

// ages replaces the age of objects made just now, keeping the width of its column.
func ages(out string) string {
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if at := age.FindStringIndex(line); at != nil {
			padded := fmt.Sprintf("%-*s", at[1]-at[0], "0s")
			if at[1] == len(line) {
				padded = "0s"
			}
			lines[i] = line[:at[0]] + padded + line[at[1]:]
		}
	}
	return strings.Join(lines, "\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is meant, run make golden (-want +got):\n%s", path, diff)
	}
}
