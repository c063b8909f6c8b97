package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args    []string
		want    options
		problem string
	}{
		"exclusive": {
			args: []string{"exclusive", "-ledger", "l", "-exit-code", "3", "-ignore-term"},
			want: options{mode: "exclusive", ledger: "l", tokenFile: "etc/conch/token", every: 20 * time.Millisecond, exitCode: 3, ignoreTerm: true},
		},
		"leader": {
			args: []string{"leader", "-witness", "w", "-every", "1s", "-run-for", "2s"},
			want: options{mode: "leader", witness: "w", tokenFile: "etc/conch/token", every: time.Second, runFor: 2 * time.Second},
		},
		"no mode":                {problem: "exclusive or leader"},
		"another mode":           {args: []string{"both"}, problem: `no mode "both"`},
		"exclusive, no ledger":   {args: []string{"exclusive"}, problem: "-ledger"},
		"leader with no witness": {args: []string{"leader"}, problem: "-witness"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := parse(tc.args)

			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("got %v, want an error that says %s", err, tc.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadToken(t *testing.T) {
	root := t.TempDir()
	t.Setenv("NODEAGENT_ROOT", root)
	for name, content := range map[string]string{"token": "42\n", "empty": "", "leader": "leader", "follower": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		token, role string
		want        bool
	}{
		"a token alone":               {token: "token", want: true},
		"a token with the role":       {token: "token", role: "leader", want: true},
		"a token without the role":    {token: "token", role: "follower"},
		"an empty file":               {token: "empty"},
		"a file that is not there":    {token: "nowhere"},
		"a role file that is missing": {token: "token", role: "nowhere"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, got := readToken(options{tokenFile: tc.token, roleFile: tc.role}); got != tc.want {
				t.Errorf("leads is %t, want %t", got, tc.want)
			}
		})
	}
}
