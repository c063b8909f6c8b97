package rig

import (
	"net/http"
	"slices"
	"time"
)

// lagging passes on what a watch writes, in order and each piece a fixed time late.
type lagging struct {
	http.ResponseWriter
	by     time.Duration
	pieces chan piece
	done   chan struct{}
}

type piece struct {
	at   time.Time
	data []byte
}

func lagBehind(w http.ResponseWriter, by time.Duration) *lagging {
	l := &lagging{ResponseWriter: w, by: by, pieces: make(chan piece, 10000), done: make(chan struct{})}
	go l.pass()
	return l
}

// pass ends with end, which waits for it: nothing may be written once the handler has returned.
func (l *lagging) pass() {
	defer close(l.done)
	for p := range l.pieces {
		<-time.After(time.Until(p.at))
		if _, err := l.ResponseWriter.Write(p.data); err != nil {
			continue // whoever watched is gone, and the rest is for nobody
		}
		_ = http.NewResponseController(l.ResponseWriter).Flush()
	}
}

func (l *lagging) Write(data []byte) (int, error) {
	l.pieces <- piece{at: time.Now().Add(l.by), data: slices.Clone(data)}
	return len(data), nil
}

// Flush is done with each piece.
func (l *lagging) Flush() {}

func (l *lagging) end() {
	close(l.pieces)
	<-l.done
}
