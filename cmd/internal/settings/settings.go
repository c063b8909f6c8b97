// Package settings reads conch's one configuration file. It knows neither Kubernetes nor Redis.
//
// A file is taken as a whole or refused as a whole, with every problem at once, each with its line,
// its field and what to write instead. Unknown fields are problems: a setting without effect is
// worse than none. Secrets never stand in the file, only the paths of the files that have them, and
// no value of a field that might be a secret is ever repeated in a message.
package settings

import (
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Settings are the content of the file, with defaults filled in.
type Settings struct {
	// ClusterID is this cluster's identity; empty if conch is to find it out.
	ClusterID string
	// ClusterSet names the clusters that share locks; empty if this cluster's are its own.
	ClusterSet string
	// Contend is false while the operator drains this cluster. It is the one field that is taken up
	// without a restart, see Watcher.
	Contend bool
	// KeyPrefix stands before every key in a backend that is not raw.
	KeyPrefix string
	// Namespaces that conch looks at; empty for all.
	Namespaces []string
	RawKeys    []RawKey

	LeaseNamespace, LeaseName     string
	MetricsAddress, HealthAddress string

	Timings  Timings
	Backends map[string]Backend
}

// RawKey allows a namespace to use raw keys.
type RawKey struct {
	Namespace string
	Pattern   Pattern
}

// Timings are conch's own; those of a lock stand in its spec.
type Timings struct {
	// RetryInitial and RetryCap pace those that wait for a lock.
	RetryInitial, RetryCap time.Duration
	// MaxBlindRenew bounds how long locks are renewed without the API server.
	MaxBlindRenew time.Duration
	// UnreadyAfter is how long a backend may be silent before the replica is not ready.
	UnreadyAfter time.Duration
	// Those of the Lease.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Mode is how the addresses of a backend are to be understood.
type Mode string

// ModeStandalone is one server, or one name that always leads to the master.
const ModeStandalone Mode = "standalone"

// Backend is one store of locks.
type Backend struct {
	Mode      Mode
	Addresses []string
	DB        int
	// TLS is nil for a plain connection.
	TLS                        *TLS
	UsernameFile, PasswordFile string
	// Timeout bounds one operation.
	Timeout time.Duration
	// MaxTTL is the longest ttl that a lock may ask this backend for.
	MaxTTL time.Duration
}

// TLS says how to speak it.
type TLS struct {
	// CAFile has the authorities to trust; empty for those of the system.
	CAFile string
	// CertFile and KeyFile are the certificate to show; empty for none.
	CertFile, KeyFile string
	// ServerName is the name to expect in the server's certificate; empty for that of the address.
	ServerName         string
	InsecureSkipVerify bool
}

const (
	// DefaultLeaseName is the Lease of a conch that is alone in its namespace.
	DefaultLeaseName = "conch"
	// DefaultKeyPrefix is what one ACL pattern can cover.
	DefaultKeyPrefix = "conch:"

	defaultMetricsAddress = ":8080"
	defaultHealthAddress  = ":8081"
)

// defaults are what an empty file would mean.
func defaults() Settings {
	return Settings{
		Contend:        true,
		KeyPrefix:      DefaultKeyPrefix,
		LeaseName:      DefaultLeaseName,
		MetricsAddress: defaultMetricsAddress,
		HealthAddress:  defaultHealthAddress,
		Timings: Timings{
			RetryInitial:  50 * time.Millisecond,
			RetryCap:      3 * time.Second,
			MaxBlindRenew: 30 * time.Minute,
			UnreadyAfter:  15 * time.Second,
			LeaseDuration: 15 * time.Second,
			RenewDeadline: 10 * time.Second,
			RetryPeriod:   2 * time.Second,
		},
	}
}

func defaultBackend() Backend {
	return Backend{Mode: ModeStandalone, Timeout: time.Second, MaxTTL: lock.MaxTTL}
}

// AllowsNamespace reports whether locks of a namespace are this conch's business.
func (s Settings) AllowsNamespace(namespace string) bool {
	if len(s.Namespaces) == 0 {
		return true
	}
	for _, n := range s.Namespaces {
		if n == namespace {
			return true
		}
	}
	return false
}

// AllowsRawKey reports whether the operator lets a namespace use a raw key.
func (s Settings) AllowsRawKey(namespace, key string) bool {
	for _, r := range s.RawKeys {
		if r.Namespace == namespace && r.Pattern.Match(key) {
			return true
		}
	}
	return false
}
