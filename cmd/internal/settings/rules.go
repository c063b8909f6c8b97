package settings

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxClusterName = 63
	maxPrefix      = 64
)

var (
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$`)
	objectForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
)

// CheckClusterName reports why a name cannot be that of a cluster or a set of clusters. It becomes
// part of keys and owners, so it must be short and free of their separators.
func CheckClusterName(name string) error {
	if len(name) > maxClusterName || !nameForm.MatchString(name) {
		return fmt.Errorf("write 1 to %d letters, digits, dots, dashes and underscores, a letter or digit first and last", maxClusterName)
	}
	return nil
}

func backendName(name string) error {
	if len(name) > maxClusterName || !nameForm.MatchString(name) {
		return fmt.Errorf("is no name for a backend: write 1 to %d letters, digits, dots, dashes and underscores", maxClusterName)
	}
	return nil
}

func objectName(name string) error {
	if len(name) > maxClusterName || !objectForm.MatchString(name) {
		return fmt.Errorf("write the name of one object: 1 to %d lower case letters, digits and dashes", maxClusterName)
	}
	return nil
}

func keyPrefix(prefix string) error {
	bad := func(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }
	if prefix == "" || len(prefix) > maxPrefix || strings.ContainsFunc(prefix, bad) {
		return fmt.Errorf("write 1 to %d printable characters without spaces and braces, such as %s", maxPrefix, DefaultKeyPrefix)
	}
	return nil
}

func mode(m string) error {
	switch {
	case m == string(ModeStandalone):
		return nil
	case m == "sentinel" || m == "cluster":
		return fmt.Errorf("%s is not supported yet: write standalone, with a name that always leads to the master", m)
	}
	return errors.New("is no mode: write standalone")
}

// address does not repeat what it refuses: a URL may have a password in it.
func address(a string) error {
	if strings.HasPrefix(a, "/") {
		return nil // a socket
	}
	if strings.ContainsAny(a, "@/? ") {
		return errors.New("write host:port only; user, password, database and TLS have fields of their own")
	}
	host, port, err := net.SplitHostPort(a)
	if err != nil || host == "" || !portNumber(port, 1) {
		return errors.New("write host:port, such as redis:6379 or [::1]:6379, or the path of a socket")
	}
	return nil
}

func bindAddress(a string) error {
	if a == "0" {
		return nil // off
	}
	if _, port, err := net.SplitHostPort(a); err != nil || !portNumber(port, 0) {
		return errors.New("write :port or address:port, such as :8080, or \"0\" to turn it off")
	}
	return nil
}

func portNumber(port string, lowest int) bool {
	n, err := strconv.Atoi(port)
	return err == nil && n >= lowest && n <= 65535
}

// filePath demands a whole path, since nobody knows where conch is started.
func filePath(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("write the path of a file, beginning with a slash")
	}
	return nil
}

func serverName(name string) error {
	if name == "" || strings.ContainsAny(name, ":/ ") {
		return errors.New("write the name in the server's certificate, without a port")
	}
	return nil
}

// checkTogether looks at what several fields say.
func (r *reader) checkTogether(s Settings) {
	if r.at["backends"] == 0 {
		r.about("backends", "is missing: write one backend or more, such as default: {addresses: [\"redis:6379\"]}")
	} else if s.Backends != nil && len(s.Backends) == 0 {
		r.about("backends", "is empty: write one backend or more, such as default: {addresses: [\"redis:6379\"]}")
	}
	r.checkTimings(s.Timings)
	r.checkRawKeys(s)
	if s.HealthAddress == s.MetricsAddress && s.HealthAddress != "0" && !strings.HasSuffix(s.HealthAddress, ":0") {
		r.about(r.written("healthAddress", "metricsAddress"), "healthAddress and metricsAddress are the same: write different ones")
	}
}

func (r *reader) checkTimings(t Timings) {
	lease, deadline := r.written("timings.leaseDuration", "timings.renewDeadline"), r.written("timings.renewDeadline", "timings.retryPeriod")
	if t.LeaseDuration%time.Second != 0 {
		r.about("timings.leaseDuration", "is %s: write whole seconds, as the Lease stores them", t.LeaseDuration)
	}
	if t.RenewDeadline >= t.LeaseDuration {
		r.about(lease, "leaseDuration %s must be longer than renewDeadline %s, by a third or more: others wait that long before they decide",
			t.LeaseDuration, t.RenewDeadline)
	}
	if 2*t.RetryPeriod > t.RenewDeadline {
		r.about(deadline, "renewDeadline %s must have room for two tries, each retryPeriod %s apart", t.RenewDeadline, t.RetryPeriod)
	}
	if t.RetryInitial > t.RetryCap {
		r.about(r.written("timings.retryInitial", "timings.retryCap"), "retryInitial %s must not exceed retryCap %s", t.RetryInitial, t.RetryCap)
	}
}

func (r *reader) checkRawKeys(s Settings) {
	for i, k := range s.RawKeys {
		at := fmt.Sprintf("rawKeys[%d]", i)
		if len(s.Namespaces) > 0 && k.Namespace != "" && !slices.Contains(s.Namespaces, k.Namespace) {
			r.about(at+".namespace", "is not among namespaces, so the entry has no effect: add it there, or remove the entry")
		}
		if strings.HasPrefix(string(k.Pattern), s.KeyPrefix) {
			r.about(at+".pattern", "begins with keyPrefix %s, where conch's own keys stand: raw keys must begin otherwise", s.KeyPrefix)
		}
	}
}

// written returns the first of some fields that stands in the file, the first if none does.
func (r *reader) written(fields ...string) string {
	for _, f := range fields {
		if r.at[f] > 0 {
			return f
		}
	}
	return fields[0]
}
