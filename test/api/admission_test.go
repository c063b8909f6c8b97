package api

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

var lockResource = lockv1alpha1.GroupVersion.WithResource("distributedlocks")

// dry asks the API server without leaving anything.
var dry = []string{metav1.DryRunAll}

const (
	doNotFit  = "do not fit into ttl: write at most ttl/6 as renewInterval and at most ttl/2 as fenceGrace, leave both out, or raise ttl"
	plainText = "must be valid UTF-8 without control characters: write plain text"
	tooLong   = "may not be more than 253"
)

func TestServerAcceptsSpecs(t *testing.T) {
	cases := map[string]string{
		"nothing at all":                         `{}`,
		"the shortest ttl":                       `{ttl: 5s}`,
		"the longest ttl":                        `{ttl: 24h}`,
		"a ttl of several units":                 `{ttl: 1h30m15s}`,
		"every duration":                         `{ttl: 2m, renewInterval: 10500ms, fenceGrace: 20s, takeoverDelay: 1m, maxHold: 12h, startDeadline: 90s}`,
		"a renewal every quarter of a short ttl": `{ttl: 5s, renewInterval: 1250ms}`,
		"half of the ttl as grace":               `{ttl: 60s, renewInterval: 10s, fenceGrace: 30s}`,
		"a key of one character":                 `{key: a}`,
		"a key of 63 characters":                 fmt.Sprintf(`{key: %q}`, strings.Repeat("a", 63)),
		"a key longer than a label value":        fmt.Sprintf(`{key: %q}`, strings.Repeat("a", 64)),
		"a key of 253 characters":                fmt.Sprintf(`{key: %q}`, strings.Repeat("a", 253)),
		"a key of characters special elsewhere":  `{key: "a:/{}*%[] b"}`,
		"a key of right-to-left text":            `{key: "מנעול"}`,
		"a raw key":                              `{rawKey: "orders:{42}:lock"}`,
		"every policy":                           `{backend: eu-1, onBackendLoss: Fence, onDemote: Demote, onUnreachable: Release, retryElsewhere: true}`,
	}
	for name, spec := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := locks(t, "default").Create(t.Context(), object(t, spec), metav1.CreateOptions{DryRun: dry}); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestServerRefusesSpecsAndSaysWhatToWrite(t *testing.T) {
	cases := map[string]struct{ spec, field, want string }{
		"a ttl without unit":                  {`{ttl: "5"}`, "spec.ttl", "write a number and a unit, like 60s, 5m or 1h30m"},
		"a ttl that is a number":              {`{ttl: 5}`, "spec.ttl", "must be of type string"},
		"a ttl that is a word":                {`{ttl: soon}`, "spec.ttl", "write a number and a unit, like 60s, 5m or 1h30m"},
		"an empty ttl":                        {`{ttl: ""}`, "spec.ttl", "write a number and a unit, like 60s, 5m or 1h30m"},
		"a negative ttl":                      {`{ttl: -60s}`, "spec.ttl", "write a number and a unit"},
		"a ttl in days":                       {`{ttl: 1d}`, "spec.ttl", "write a number and a unit"},
		"a ttl that is too short":             {`{ttl: 1s}`, "spec.ttl", "ttl must be from 5s to 24h: write 15s or more for workloads"},
		"a ttl that is too long":              {`{ttl: 25h}`, "spec.ttl", "ttl must be from 5s to 24h"},
		"a renewal too rare for the ttl":      {`{ttl: 60s, renewInterval: 23s}`, "spec.ttl", doNotFit},
		"a grace too long for the ttl":        {`{ttl: 60s, fenceGrace: 36s}`, "spec.ttl", doNotFit},
		"both too long for the ttl":           {`{ttl: 60s, renewInterval: 13s, fenceGrace: 30s}`, "spec.ttl", doNotFit},
		"timings too long for the default":    {`{renewInterval: 23s}`, "spec.ttl", doNotFit},
		"a renewal in the blink of an eye":    {`{renewInterval: 10ms}`, "spec.renewInterval", "must be from 100ms to 12h"},
		"a grace with a fraction":             {`{fenceGrace: 1.5s}`, "spec.fenceGrace", "write whole seconds with a unit, like 10s or 1m"},
		"no grace":                            {`{fenceGrace: 0s}`, "spec.fenceGrace", "must be from 1s"},
		"no takeover delay":                   {`{takeoverDelay: 0s}`, "spec.takeoverDelay", "must be from 1s to 24h"},
		"no maximal hold":                     {`{maxHold: 0s}`, "spec.maxHold", "must be from 5s to 8760h"},
		"no start deadline":                   {`{startDeadline: 0s}`, "spec.startDeadline", "must be from 1s to 24h"},
		"a duration that overflows":           {`{maxHold: 99999999999999999999h}`, "spec.maxHold", "write a number and a unit"},
		"key and rawKey":                      {`{key: a, rawKey: b}`, "spec.rawKey", "write key or rawKey, not both"},
		"an empty key":                        {`{key: ""}`, "spec.key", "at least 1"},
		"a key of 254 characters":             {fmt.Sprintf(`{key: %q}`, strings.Repeat("a", 254)), "spec.key", tooLong},
		"a key of 10,000 characters":          {fmt.Sprintf(`{key: %q}`, strings.Repeat("a", 10_000)), "spec.key", tooLong},
		"a key of a megabyte":                 {fmt.Sprintf(`{key: %q}`, strings.Repeat("a", 1<<20)), "spec.key", tooLong},
		"a key that is too long once escaped": {fmt.Sprintf(`{key: %q}`, strings.Repeat("{", 85)), "spec.key", "write at most 253 bytes of UTF-8, where %, { and } count three"},
		"a key of too many bytes":             {fmt.Sprintf(`{key: %q}`, strings.Repeat("ж", 127)), "spec.key", "write at most 253 bytes of UTF-8"},
		"a key with a NUL":                    {`{key: "a\0b"}`, "spec.key", plainText},
		"a key with a line break":             {`{key: "a\nb"}`, "spec.key", plainText},
		"a key that was mangled before":       {`{key: "a\ufffdb"}`, "spec.key", plainText},
		"a raw key with a control character":  {`{rawKey: "a\x1bb"}`, "spec.rawKey", plainText},
		"a raw key among conch's own":         {`{rawKey: "conch:{east/shop/a}"}`, "spec.rawKey", "use key for a lock of conch"},
		"a backend that is no name":           {`{backend: "a b"}`, "spec.backend", "write the name of a backend of conch's configuration"},
		"an unknown policy":                   {`{onBackendLoss: Panic}`, "spec.onBackendLoss", `supported values: "Hold", "Fence"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := locks(t, "default").Create(t.Context(), object(t, tc.spec), metav1.CreateOptions{DryRun: dry})
			if err == nil {
				t.Fatalf("accepted %.80s", tc.spec)
			}
			if msg := err.Error(); !strings.Contains(msg, tc.field) || !strings.Contains(msg, tc.want) {
				t.Errorf("the message does not name %s and %q: %.400s", tc.field, tc.want, msg)
			}
			if strings.Contains(err.Error(), "evaluating rule") || strings.Contains(err.Error(), "conversion error") {
				t.Errorf("a rule failed to evaluate: %.400s", err)
			}
		})
	}
}

func TestServerRefusesAKeyThatIsNotUTF8(t *testing.T) {
	client := restClient(t)
	body := []byte(`{"apiVersion":"conch.dev/v1alpha1","kind":"DistributedLock","metadata":{"name":"bytes"},"spec":{"key":"a` + "\xff\xfe" + `b"}}`)
	err := client.Post().AbsPath("/apis/conch.dev/v1alpha1/namespaces/default/distributedlocks").
		SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	if err == nil {
		t.Fatal("accepted: two such keys would be one in Redis")
	}
}

// C93: a lock is released under the name under which it was acquired, because that cannot change.
func TestServerKeepsWhatIdentifiesALock(t *testing.T) {
	cases := map[string]struct{ before, after, want string }{
		"key changed":        {`{key: a}`, `{key: b}`, "key cannot be added, changed or removed"},
		"key added":          {`{}`, `{key: a}`, "key cannot be added, changed or removed"},
		"key removed":        {`{key: a}`, `{}`, "key cannot be added, changed or removed"},
		"rawKey changed":     {`{rawKey: a}`, `{rawKey: b}`, "rawKey cannot be added, changed or removed"},
		"rawKey added":       {`{}`, `{rawKey: a}`, "rawKey cannot be added, changed or removed"},
		"rawKey removed":     {`{rawKey: a}`, `{}`, "rawKey cannot be added, changed or removed"},
		"backend changed":    {`{backend: a}`, `{backend: b}`, "backend cannot be changed"},
		"backend added":      {`{}`, `{backend: a}`, "backend cannot be changed"},
		"backend removed":    {`{backend: a}`, `{}`, "backend cannot be changed"},
		"the rest may":       {`{key: a, ttl: 60s}`, `{key: a, ttl: 90s, maxHold: 1h, onDemote: Demote}`, ""},
		"the default spoken": {`{}`, `{backend: default, ttl: 60s}`, ""},
	}
	ns := namespace(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client := locks(t, ns)
			was, err := client.Create(t.Context(), object(t, tc.before), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			is := object(t, tc.after)
			is.SetName(was.GetName())
			is.SetResourceVersion(was.GetResourceVersion())
			_, err = client.Update(t.Context(), is, metav1.UpdateOptions{})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}

// object makes a lock with a generated name from the YAML of its spec.
func object(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("%.80s: %v", spec, err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	o.SetAPIVersion(lockv1alpha1.GroupVersion.String())
	o.SetKind("DistributedLock")
	o.SetGenerateName("lock-")
	return o
}
