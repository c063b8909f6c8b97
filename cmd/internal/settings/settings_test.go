package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/conch-dev/conch/cmd/internal/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const full = `
clusterId: east
clusterSet: production
contend: false
keyPrefix: "locks:"
namespaces: [shop, billing]
rawKeys:
- {namespace: shop, pattern: "orders:*"}
leaseNamespace: conch-system
leaseName: conch-shop
metricsAddress: "0"
healthAddress: 127.0.0.1:9000
timings:
  retryInitial: 20ms
  retryCap: 1s
  maxBlindRenew: 10m
  unreadyAfter: 5s
  leaseDuration: 6s
  renewDeadline: 4s
  retryPeriod: 1s
backends:
  default:
    mode: standalone
    addresses: ["redis.shop:6379"]
    db: 3
    timeout: 500ms
    maxTTL: 1h
    usernameFile: /secrets/user
    passwordFile: /secrets/password
    tls:
      caFile: /tls/ca.crt
      certFile: /tls/tls.crt
      keyFile: /tls/tls.key
      serverName: redis.example.org
  socket:
    addresses: [/run/redis.sock]
    tls: {insecureSkipVerify: true}
`

func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	got, err := settings.Parse("conch.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Settings{
		ClusterID: "east", ClusterSet: "production", KeyPrefix: "locks:", Namespaces: []string{"shop", "billing"},
		RawKeys:        []settings.RawKey{{Namespace: "shop", Pattern: "orders:*"}},
		LeaseNamespace: "conch-system", LeaseName: "conch-shop", MetricsAddress: "0", HealthAddress: "127.0.0.1:9000",
		Timings: settings.Timings{
			RetryInitial: 20 * time.Millisecond, RetryCap: time.Second, MaxBlindRenew: 10 * time.Minute, UnreadyAfter: 5 * time.Second,
			LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: time.Second,
		},
		Backends: map[string]settings.Backend{
			"default": {
				Mode: "standalone", Addresses: []string{"redis.shop:6379"}, DB: 3, Timeout: 500 * time.Millisecond, MaxTTL: time.Hour,
				UsernameFile: "/secrets/user", PasswordFile: "/secrets/password",
				TLS: &settings.TLS{CAFile: "/tls/ca.crt", CertFile: "/tls/tls.crt", KeyFile: "/tls/tls.key", ServerName: "redis.example.org"},
			},
			"socket": {
				Mode: "standalone", Addresses: []string{"/run/redis.sock"}, Timeout: time.Second, MaxTTL: 24 * time.Hour,
				TLS: &settings.TLS{InsecureSkipVerify: true},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheShortestFileHasTheDocumentedDefaults(t *testing.T) {
	t.Parallel()
	got, err := settings.Parse("conch.yaml", []byte("backends: {default: {addresses: ['redis:6379']}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Settings{
		Contend: true, KeyPrefix: "conch:", LeaseName: "conch", MetricsAddress: ":8080", HealthAddress: ":8081",
		Timings: settings.Timings{
			RetryInitial: 50 * time.Millisecond, RetryCap: 3 * time.Second, MaxBlindRenew: 30 * time.Minute, UnreadyAfter: 15 * time.Second,
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		},
		Backends: map[string]settings.Backend{
			"default": {Mode: "standalone", Addresses: []string{"redis:6379"}, Timeout: time.Second, MaxTTL: 24 * time.Hour},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const good = "\nbackends: {default: {addresses: ['redis:6379']}}"

func TestEachProblemNamesItsLineItsFieldAndWhatToWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ yaml, want string }{
		"an empty file":                   {"", "f: is empty: write at least backends.default.addresses"},
		"a file of comments":              {"# nothing\n", "f: is empty: write at least backends.default.addresses"},
		"a file that is a list":           {"- a", "f:1: is a list: write fields such as backends"},
		"a second document":               {good + "\n---\na: b", "f:3: has a second document: put everything into the first"},
		"no backends":                     {"contend: true", `f: backends: is missing: write one backend or more, such as default: {addresses: ["redis:6379"]}`},
		"an empty map of backends":        {"contend: true\nbackends: {}", `f:2: backends: is empty: write one backend or more, such as default: {addresses: ["redis:6379"]}`},
		"a field in the wrong case":       {"ClusterID: a" + good, "f:1: ClusterID: is no field: did you mean clusterId?"},
		"a field with a letter too few":   {"namespces: []" + good, "f:1: namespces: is no field: did you mean namespaces?"},
		"a field with letters swapped":    {"contned: true" + good, "f:1: contned: is no field: did you mean contend?"},
		"a field in snake case":           {"key_prefix: a" + good, "f:1: key_prefix: is no field: did you mean keyPrefix?"},
		"a field without its end":         {"lease: a" + good, "f:1: lease: is no field: did you mean leaseName?"},
		"a field that is like no other":   {"zzz: a" + good, "f:1: zzz: is no field: remove it; there are backends, clusterId, clusterSet, contend, healthAddress, keyPrefix, leaseName, leaseNamespace, metricsAddress, namespaces, rawKeys, timings"},
		"a field twice":                   {"contend: true\ncontend: false" + good, "f:2: contend: stands here a second time, after line 1: remove one of them"},
		"a field without a value":         {"namespaces:" + good, "f:1: namespaces: has no value: write one, or remove the line"},
		"a boolean in quotes":             {"contend: 'false'" + good, "f:1: contend: is text: write true or false, without quotes"},
		"a number as a name":              {"clusterId: 12" + good, "f:1: clusterId: is a number: write text, in quotes"},
		"a list as a name":                {"clusterId: [a]" + good, "f:1: clusterId: is a list: write text"},
		"a name with a slash":             {"clusterId: a/b" + good, "f:1: clusterId: write 1 to 63 letters, digits, dots, dashes and underscores, a letter or digit first and last"},
		"a namespace twice":               {"namespaces: [a, a]" + good, "f:1: namespaces[1]: stands here a second time: remove it"},
		"a namespace that is none":        {"namespaces:\n- A_b" + good, "f:2: namespaces[0]: write the name of one object: 1 to 63 lower case letters, digits and dashes"},
		"one namespace instead of a list": {"namespaces: shop" + good, "f:1: namespaces: is text: write a list, such as [shop, billing]"},
		"a prefix with braces":            {"keyPrefix: '{a}'" + good, "f:1: keyPrefix: write 1 to 64 printable characters without spaces and braces, such as conch:"},
		"a raw key without a pattern":     {"rawKeys:\n- namespace: shop" + good, "f:2: rawKeys[0].pattern: is missing: write both namespace and pattern"},
		"a raw key pattern with a class":  {"rawKeys:\n- namespace: shop\n  pattern: a[bc]" + good, `f:3: rawKeys[0].pattern: classes are not supported: write \[ and \] where a key has brackets, or one entry for each key`},
		"a raw key among conch's own":     {"rawKeys:\n- namespace: shop\n  pattern: conch:*" + good, "f:3: rawKeys[0].pattern: begins with keyPrefix conch:, where conch's own keys stand: raw keys must begin otherwise"},
		"a raw key of a namespace left out": {"namespaces: [a]\nrawKeys:\n- {namespace: shop, pattern: b}" + good,
			"f:3: rawKeys[0].namespace: is not among namespaces, so the entry has no effect: add it there, or remove the entry"},
		"a duration without a unit":        {"timings:\n  retryCap: 3" + good, "f:2: timings.retryCap: has no unit: write a duration such as 3s, from 10ms to 1m"},
		"a duration that is none":          {"timings: {retryCap: soon}" + good, "f:1: timings.retryCap: is no duration: write one such as 15s or 1m30s, from 10ms to 1m"},
		"a duration out of bounds":         {"timings: {maxBlindRenew: 48h}" + good, "f:1: timings.maxBlindRenew: is 48h: write a duration from 1m to 24h"},
		"a Lease shorter than its renewal": {"timings:\n  leaseDuration: 8s" + good, "f:2: timings.leaseDuration: leaseDuration 8s must be longer than renewDeadline 10s, by a third or more: others wait that long before they decide"},
		"a renewal without a second try":   {"timings:\n  retryPeriod: 6s" + good, "f:2: timings.retryPeriod: renewDeadline 10s must have room for two tries, each retryPeriod 6s apart"},
		"a Lease of half seconds":          {"timings: {leaseDuration: 15500ms}" + good, "f:1: timings.leaseDuration: is 15.5s: write whole seconds, as the Lease stores them"},
		"a first retry after the last":     {"timings: {retryInitial: 5s}" + good, "f:1: timings.retryInitial: retryInitial 5s must not exceed retryCap 3s"},
		"an address to bind without port":  {"metricsAddress: localhost" + good, `f:1: metricsAddress: write :port or address:port, such as :8080, or "0" to turn it off`},
		"two servers on one address":       {"metricsAddress: ':8081'" + good, "f:1: metricsAddress: healthAddress and metricsAddress are the same: write different ones"},
		"a mode that comes later":          {"backends:\n  a:\n    mode: sentinel\n    addresses: ['a:1']", "f:3: backends.a.mode: sentinel is not supported yet: write standalone, with a name that always leads to the master"},
		"a mode that is none":              {"backends:\n  a:\n    mode: single\n    addresses: ['a:1']", "f:3: backends.a.mode: is no mode: write standalone"},
		"a backend without addresses":      {"backends:\n  a:\n    db: 1", `f:2: backends.a: has no addresses: write one, such as addresses: ["redis:6379"]`},
		"a backend without anything":       {"backends:\n  a:", "f:2: backends.a: is empty: write fields such as addresses"},
		"a backend with two addresses":     {"backends: {a: {addresses: ['a:1', 'b:1']}}", "f:1: backends.a.addresses: has 2 entries: mode standalone takes exactly one"},
		"a backend with a strange name":    {"backends: {'a b': {addresses: ['a:1']}}", "f:1: backends.a b: is no name for a backend: write 1 to 63 letters, digits, dots, dashes and underscores"},
		"an address without a port":        {"backends: {a: {addresses: [redis]}}", "f:1: backends.a.addresses[0]: write host:port, such as redis:6379 or [::1]:6379, or the path of a socket"},
		"an address as a URL":              {"backends: {a: {addresses: ['redis://:S3cr3t@a:1']}}", "f:1: backends.a.addresses[0]: write host:port only; user, password, database and TLS have fields of their own"},
		"a password in the file":           {"backends:\n  a:\n    addresses: ['a:1']\n    password: S3cr3t", "f:4: backends.a.password: is no field: write passwordFile with the path of a file that has it"},
		"a relative path":                  {"backends: {a: {addresses: ['a:1'], passwordFile: pw}}", "f:1: backends.a.passwordFile: write the path of a file, beginning with a slash"},
		"a user without a password":        {"backends:\n  a:\n    addresses: ['a:1']\n    usernameFile: /u", "f:4: backends.a.usernameFile: has no effect without a password: write passwordFile too"},
		"a certificate without a key":      {"backends:\n  a:\n    addresses: ['a:1']\n    tls:\n      certFile: /c", "f:5: backends.a.tls.certFile: stands alone: write keyFile too"},
		"a key without a certificate":      {"backends:\n  a:\n    addresses: ['a:1']\n    tls:\n      keyFile: /c", "f:5: backends.a.tls.keyFile: stands alone: write certFile too"},
		"an authority that is not asked":   {"backends: {a: {addresses: ['a:1'], tls: {caFile: /c, insecureSkipVerify: true}}}", "f:1: backends.a.tls.insecureSkipVerify: leaves caFile without effect: remove one of them"},
		"a database out of bounds":         {"backends: {a: {addresses: ['a:1'], db: -1}}", "f:1: backends.a.db: write a whole number from 0 to 32767"},
		"a ttl that no lock may have":      {"backends: {a: {addresses: ['a:1'], maxTTL: 48h}}", "f:1: backends.a.maxTTL: is 48h: write a duration from 5s to 24h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := settings.Parse("f", []byte(tc.yaml))
			if err == nil {
				t.Fatal("no problem")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), "S3cr3t") {
				t.Error("a secret is in the message")
			}
		})
	}
}

func TestAllProblemsAreNamedAtOnceInTheOrderOfTheLines(t *testing.T) {
	t.Parallel()
	_, err := settings.Parse("f", []byte("clusterSet: a/b\ncontned: false\nbackends:\n  default:\n    addresses: [redis]\n    db: one\n    tls: {cafile: x}\n"))
	var problems *settings.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, p := range problems.List {
		got = append(got, p.Field)
	}
	want := []string{"clusterSet", "contned", "backends.default.addresses[0]", "backends.default.db", "backends.default.tls.cafile"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextThatIsNoYAMLIsAProblemOfItsLine(t *testing.T) {
	t.Parallel()
	_, err := settings.Parse("f", []byte("a: b\n\tc: d\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "f:") || !strings.Contains(err.Error(), "is no YAML") {
		t.Errorf("got %v", err)
	}
}

func TestAFileThatIsNotThereIsAProblem(t *testing.T) {
	t.Parallel()
	_, err := settings.Load(filepath.Join(t.TempDir(), "no.yaml"))
	if err == nil || !strings.HasSuffix(err.Error(), "no.yaml: cannot be read: no such file or directory") {
		t.Errorf("got %v", err)
	}
}

func TestNamespacesAndRawKeysAreAllowedAsTheFileSays(t *testing.T) {
	t.Parallel()
	limited, err := settings.Parse("f", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	open, err := settings.Parse("f", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ got, want bool }{
		"a namespace in the list":                   {limited.AllowsNamespace("shop"), true},
		"a namespace that is not":                   {limited.AllowsNamespace("web"), false},
		"any namespace without a list":              {open.AllowsNamespace("web"), true},
		"a raw key of its namespace":                {limited.AllowsRawKey("shop", "orders:1"), true},
		"a raw key of another namespace":            {limited.AllowsRawKey("billing", "orders:1"), false},
		"a raw key that is not like the pattern":    {limited.AllowsRawKey("shop", "order"), false},
		"no raw key at all without an entry for it": {open.AllowsRawKey("shop", "orders:1"), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t", name, tc.got)
		}
	}
}

func TestPatternsMatchWholeKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, key string
		want         bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a", "", false}, {"a*", "a", true}, {"a*", "a/b:c", true}, {"*", "", true},
		{"*a", "bab", false}, {"*a", "bba", true}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"a*b*c", "a1b2b3c", true},
		{"a*b*c", "a1b2b3", false}, {`a\*`, "a*", true}, {`a\*`, "ab", false}, {`\[a\]`, "[a]", true}, {"**a", "xa", true},
		{"?", "", false}, {"a*", "b", false}, {`*\?`, "why?", true}, {`*\?`, "why", false},
	} {
		if got := settings.Pattern(tc.pattern).Match(tc.key); got != tc.want {
			t.Errorf("%q on %q: %t", tc.pattern, tc.key, got)
		}
	}
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecretsAreReadWithoutTheLineBreakAtTheirEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, want, problem string }{
		"nothing but the secret":   {"S3cr3t ", "S3cr3t ", ""},
		"a line break":             {"S3cr3t\n", "S3cr3t", ""},
		"a line break of Windows":  {"S3cr3t\r\n", "S3cr3t", ""},
		"nothing":                  {"", "", "is empty"},
		"nothing but a line break": {"\n", "", "is empty"},
		"two lines":                {"S3cr3t\nmore\n", "", "more than one line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := settings.Secret(write(t, filepath.Join(t.TempDir(), "f"), tc.content))
			if got != tc.want || (err == nil) != (tc.problem == "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), "S3cr3t")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFilesThatCannotBeUsedAreAllNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := write(t, filepath.Join(dir, "ca"), "no certificate")
	s, err := settings.Parse("f", []byte(`backends: {default: {addresses: ['a:1'], usernameFile: /no/user, passwordFile: /no/password,
  tls: {caFile: `+ca+`, certFile: `+ca+`, keyFile: `+ca+`}}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = s.CheckFiles("f")
	if err == nil {
		t.Fatal("no problem")
	}
	for _, want := range []string{
		"f: backends.default: file /no/user cannot be read", "f: backends.default: file /no/password cannot be read",
		"f: backends.default.tls: file " + ca + " has no certificate", "are no pair of certificate and key",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}
