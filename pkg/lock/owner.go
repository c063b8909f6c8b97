package lock

import (
	"errors"
	"fmt"
	"strings"
)

// Owner is one attempt of one candidate to hold a key: the candidate's identity, a slash and a
// nonce. The same candidate with another nonce is another owner.
type Owner string

// maxOwnerBytes keeps a token (owner, '#' and a fencing token) readable and small.
const maxOwnerBytes = 900

// NewOwner joins a candidate's identity and a nonce.
func NewOwner(candidate, nonce string) Owner { return Owner(candidate + "/" + nonce) }

// Candidate is the owner without its nonce.
func (o Owner) Candidate() string {
	if i := strings.LastIndexByte(string(o), '/'); i >= 0 {
		return string(o[:i])
	}
	return string(o)
}

// Validate reports why the owner cannot be used, or nil.
func (o Owner) Validate() error {
	switch {
	case o == "":
		return errors.New("lock owner is empty")
	case len(o) > maxOwnerBytes:
		return fmt.Errorf("lock owner has %d bytes: at most %d fit", len(o), maxOwnerBytes)
	case strings.ContainsAny(string(o), "#\x00\n\r"):
		return fmt.Errorf("lock owner %q must not contain '#' or control characters", string(o))
	case strings.HasPrefix(string(o), "released/"):
		return fmt.Errorf("lock owner %q must not begin with released/", string(o))
	}
	return nil
}
