package settings

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"sync"
	"time"
)

// defaultEvery is how often the file is looked at. It is read rather than watched: a mounted
// ConfigMap is changed by swapping links, which notifications of the file system easily miss, and
// one small read costs nothing.
const defaultEvery = 2 * time.Second

// Watcher follows the file while conch runs, for the settings that are taken up without a restart.
type Watcher struct {
	// Every is how often to look; two seconds if zero. Set it before Run.
	Every time.Duration
	// Report is told what was found in a changed file: an error that left everything as it was, or
	// whether settings changed which count from the next start only. It may be nil.
	Report func(err error, restart bool)

	file    string
	started Settings
	content []byte // what Run saw last

	mu          sync.Mutex // guards the rest
	contend     bool
	subscribers []chan struct{}
}

// NewWatcher follows file, which was loaded as s.
func NewWatcher(file string, s Settings) *Watcher {
	return &Watcher{file: file, started: s, contend: s.Contend}
}

// Contending reports whether the newest valid file lets this cluster contend for locks.
func (w *Watcher) Contending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.contend
}

// Changed returns a channel of its own for each caller, which gets a value whenever Contending
// changes.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan struct{}, 1)
	w.subscribers = append(w.subscribers, ch)
	return ch
}

// Run looks at the file until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	every := w.Every
	if every == 0 {
		every = defaultEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.look()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (w *Watcher) look() {
	data, readErr := os.ReadFile(w.file)
	if w.content != nil && bytes.Equal(data, w.content) {
		return
	}
	w.content = append([]byte{}, data...)
	s, err := parseRead(w.file, data, readErr)
	changed := err == nil && w.take(s)
	restart := err == nil && !w.sameButContend(s)
	if w.Report != nil && (changed || restart || err != nil) {
		w.Report(err, restart)
	}
}

func (w *Watcher) take(s Settings) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Contend == w.contend {
		return false
	}
	w.contend = s.Contend
	for _, ch := range w.subscribers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
	return true
}

// sameButContend reports whether nothing changed that needs a restart.
func (w *Watcher) sameButContend(s Settings) bool {
	s.Contend = w.started.Contend
	return reflect.DeepEqual(s, w.started)
}
