package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// AuditEvent is what the audit log says of one finished request.
type AuditEvent struct {
	Time      time.Time
	User      string
	Agent     string
	Verb      string
	Resource  string // with the subresource: pods/status
	Namespace string
	Name      string
	Code      int
}

// AuditMark returns a position in the audit log: AuditSince of it gives what is logged from now on.
func (c *Cluster) AuditMark() (int64, error) {
	info, err := os.Stat(filepath.Join(c.dir, auditFile))
	if err != nil {
		return 0, fmt.Errorf("look at the audit log of %s: %w", c.name, err)
	}
	return info.Size(), nil
}

// AuditSince returns the requests after mark for which match holds, in the order in which they ended. A watch is logged when it starts
// and when it ends.
func (c *Cluster) AuditSince(mark int64, match func(AuditEvent) bool) ([]AuditEvent, error) {
	f, err := os.Open(filepath.Join(c.dir, auditFile))
	if err != nil {
		return nil, fmt.Errorf("open the audit log of %s: %w", c.name, err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.NewSectionReader(f, mark, 1<<62-mark))
	if err != nil {
		return nil, fmt.Errorf("read the audit log of %s: %w", c.name, err)
	}
	return parseAudit(raw, match)
}

// Writes matches the requests of a user that change something. A service account's user is system:serviceaccount:<namespace>:<name>.
func Writes(user string) func(AuditEvent) bool {
	verbs := []string{"create", "update", "patch", "delete", "deletecollection"}
	return func(e AuditEvent) bool { return e.User == user && slices.Contains(verbs, e.Verb) }
}

// parseAudit leaves out a last line that is still being written.
func parseAudit(raw []byte, match func(AuditEvent) bool) ([]AuditEvent, error) {
	var found []AuditEvent
	for {
		line, rest, whole := bytes.Cut(raw, []byte("\n"))
		if !whole {
			return found, nil
		}
		raw = rest
		var l auditLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("parse an audit line: %w", err)
		}
		if e := l.event(); match(e) {
			found = append(found, e)
		}
	}
}

// auditLine is the part of audit.k8s.io/v1 Event that is of use here.
type auditLine struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

func (l auditLine) event() AuditEvent {
	e := AuditEvent{
		Time: l.StageTimestamp, User: l.User.Username, Agent: l.UserAgent, Verb: l.Verb, Code: l.ResponseStatus.Code,
		Resource: l.ObjectRef.Resource, Namespace: l.ObjectRef.Namespace, Name: l.ObjectRef.Name,
	}
	if l.ObjectRef.Subresource != "" {
		e.Resource += "/" + l.ObjectRef.Subresource
	}
	return e
}
