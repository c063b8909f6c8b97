package settings_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/conch-dev/conch/cmd/internal/settings"
)

type report struct {
	err     error
	restart bool
}

// follow watches a file that is mounted as a ConfigMap is: through a link that is swapped.
func follow(t *testing.T, content string) (w *settings.Watcher, swap func(string), reports chan report) {
	t.Helper()
	dir := t.TempDir()
	n := 0
	swap = func(content string) {
		n++
		version := filepath.Join(dir, string(rune('a'+n)))
		if err := os.Mkdir(version, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(version, "conch.yaml"), content)
		if err := os.Symlink(version, filepath.Join(dir, "next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
	swap(content)
	file := filepath.Join(dir, "data", "conch.yaml")
	s, err := settings.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	reports = make(chan report, 10)
	w = settings.NewWatcher(file, s)
	w.Every = time.Millisecond
	w.Report = func(err error, restart bool) { reports <- report{err, restart} }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return w, swap, reports
}

func TestContendIsTakenUpWhileConchRuns(t *testing.T) {
	t.Parallel()
	w, swap, reports := follow(t, "contend: true"+good)
	changed := w.Changed()
	swap("contend: false" + good)
	<-changed
	if w.Contending() {
		t.Error("still contending")
	}
	if r := <-reports; r.err != nil || r.restart {
		t.Errorf("reported %+v", r)
	}
	swap("# contend is true by default" + good)
	<-changed
	if !w.Contending() {
		t.Error("not contending again")
	}
}

func TestAChangedFileWithProblemsChangesNothingAndIsReported(t *testing.T) {
	t.Parallel()
	w, swap, reports := follow(t, "contend: false"+good)
	swap("contend: yes please" + good)
	if r := <-reports; r.err == nil {
		t.Error("no problem was reported")
	}
	if w.Contending() {
		t.Error("contending")
	}
}

func TestOtherChangesAreReportedAsWaitingForARestart(t *testing.T) {
	t.Parallel()
	_, swap, reports := follow(t, "contend: true"+good)
	swap("clusterSet: other" + good)
	if r := <-reports; r.err != nil || !r.restart {
		t.Errorf("reported %+v", r)
	}
}
