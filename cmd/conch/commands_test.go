package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandsPrintWhatTheyShouldAndExitAccordingly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "clusterId: east\nclusterSet: production\ncontend: false\nnamespaces: [shop]\n"+
		"rawKeys: [{namespace: shop, pattern: 'a*'}]\nbackends: {default: {addresses: ['redis:6379'], passwordFile: /no/password}}\n")
	short := file("short", "backends: {default: {addresses: ['redis:6379']}}\n")
	bad := file("bad", "clusterset: production\nbackends:\n  default:\n    addresses: [redis]\n")
	for name, tc := range map[string]struct {
		args        []string
		code        int
		out, errOut string
	}{
		"a good configuration": {[]string{"check-config", good}, 0,
			good + ": ok: cluster east; locks shared in production; drained; namespaces shop; raw keys by 1 patterns; backends default at redis:6379\n", ""},
		"the shortest one": {[]string{"check-config", short}, 0,
			short + ": ok: cluster identity found at the start; locks shared with no other cluster; all namespaces; backends default at redis:6379\n", ""},
		"a file that it names is missing": {[]string{"check-config", "--files", good}, 1,
			good + ": backends.default: file /no/password cannot be read: no such file or directory\n", ""},
		"one with problems": {[]string{"check-config", bad}, 1,
			bad + ":1: clusterset: is no field: did you mean clusterSet?\n" +
				bad + ":4: backends.default.addresses[0]: write host:port, such as redis:6379 or [::1]:6379, or the path of a socket\n", ""},
		"no file":            {[]string{"check-config"}, 2, "", "usage: conch check-config FILE [--files]\n"},
		"the version":        {[]string{"version"}, 0, "dev\n", ""},
		"help":               {[]string{"help"}, 0, usage, ""},
		"an unknown command": {[]string{"start"}, 2, "", "usage: there is no command \"start\"\n" + usage + "\n"},
		"run without flags": {[]string{"--log-level", "loud", "--log-format", "xml", "--identity", "a,b", "x"}, 2, "",
			"usage: run takes no arguments, only flags: remove [\"x\"]\n--config is missing: write the path of the configuration file\n" +
				"--identity: write 1 to 200 characters without commas and spaces, such as the pod's name\n" +
				"--log-level: write one of debug, info, trace\n--log-format: write json or text\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			code := dispatch(tc.args, &out, &errOut)
			if diff := cmp.Diff([]any{tc.code, tc.out, tc.errOut}, []any{code, out.String(), errOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
