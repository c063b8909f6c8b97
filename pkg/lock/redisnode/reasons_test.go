package redisnode_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/proxy"
)

// canary is a password that must turn up nowhere (C143).
const canary = "S3cr3t-canary%40"

func credentials(user, password string) func(*redisnode.Options) {
	return func(o *redisnode.Options) {
		o.Credentials = func(context.Context) (string, string, error) { return user, password, nil }
	}
}

// discreet fails where an error shows a password or runs over several lines.
func discreet(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		for _, secret := range []string{canary, url.QueryEscape(canary), "wrong-" + canary} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the password: %v", err)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has several lines: %q", err)
		}
	}
}

// C131, C137, C143: each kind of trouble has a reason of its own, and no error shows a password.
func TestReasonsTellTroublesApart(t *testing.T) {
	t.Parallel()
	guarded := []string{"--requirepass", canary, "--user", "weak", "on", ">" + canary, "~*", "&*", "+@all", "-eval", "-evalsha"}
	narrow := []string{"--requirepass", canary, "--user", "narrow", "on", ">" + canary, "~other:*", "&*", "+@all"}
	tests := map[string]struct {
		server []string
		option func(*redisnode.Options)
		want   lock.Reason
	}{
		"no password":                {guarded, samePlace, lock.ReasonNoAuth},
		"a wrong password":           {guarded, credentials("", "wrong-"+canary), lock.ReasonWrongPass},
		"a password and a newline":   {guarded, credentials("", canary+"\n"), lock.ReasonWrongPass},
		"a wrong user":               {guarded, credentials("nobody", canary), lock.ReasonWrongPass},
		"a user without scripts":     {guarded, credentials("weak", canary), lock.ReasonNoPerm},
		"a user without the key":     {narrow, credentials("narrow", canary), lock.ReasonNoPerm},
		"a cluster":                  {[]string{"--cluster-enabled", "yes"}, func(o *redisnode.Options) { o.DB = 0 }, lock.ReasonMoved},
		"a replica without a master": {[]string{"--replicaof", "127.0.0.1", "1", "--replica-serve-stale-data", "no"}, samePlace, lock.ReasonLoading},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, own(t, tc.server...).Addr(), tc.option)
			_, err := s.Acquire(t.Context(), request(ann))
			unknown(t, "acquire", err, tc.want)
			discreet(t, err)
			result := s.Renew(t.Context(), []lock.Extension{{Grant: lock.Grant{Key: key, Owner: ann, Token: "a#1"}, TTL: ttl}})[0]
			unknown(t, "renew", result.Err, tc.want)
			discreet(t, result.Err)
		})
	}
}

// C143: some servers repeat the arguments of a command that they do not know.
func TestAServerThatRepeatsThePasswordIsNotQuoted(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { echo(l, &all) })
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	s := open(t, l.Addr().String(), credentials("", canary), briefly)
	_, err = s.Acquire(t.Context(), request(ann))
	unknown(t, "acquire", err, lock.ReasonOther)
	discreet(t, err)
}

// echo refuses whatever comes and repeats it.
func echo(l net.Listener, all *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer func() { _ = conn.Close() }()
			buffer := make([]byte, 4096)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					return
				}
				words := strings.ReplaceAll(string(buffer[:n]), "\r\n", "' '")
				_, _ = conn.Write([]byte("-ERR unknown command, with args beginning with: '" + words + "'\r\n"))
			}
		})
	}
}

func TestReasonsOfALinkThatIsDown(t *testing.T) {
	t.Parallel()
	for mode, want := range map[proxy.Mode]lock.Reason{
		proxy.Refuse: lock.ReasonUnreachable, proxy.Cut: lock.ReasonUnreachable, proxy.BlackHole: lock.ReasonTimeout,
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s, p := behind(t, briefly)
			p.Set(proxy.Rule{Mode: mode})
			_, err := s.Acquire(t.Context(), request(ann))
			unknown(t, "acquire", err, want)
			p.Heal()
			NewWithT(t).Eventually(func() error { _, err := s.Acquire(t.Context(), request(ann)); return err }, patience).Should(Succeed())
		})
	}
	s := open(t, "no-such-host.invalid:1", func(o *redisnode.Options) { o.Timeout = 2 * time.Second })
	_, err := s.Acquire(t.Context(), request(ann))
	unknown(t, "acquire", err, lock.ReasonUnreachable)
}

func TestReasonsOfTLS(t *testing.T) {
	t.Parallel()
	unknownAuthority := httptest.NewTLSServer(nil)
	t.Cleanup(unknownAuthority.Close)
	unknownAuthority.Config.ErrorLog = log.New(io.Discard, "", 0)
	encrypted := func(o *redisnode.Options) { o.TLS, o.Timeout = &tls.Config{MinVersion: tls.VersionTLS12}, 5*brief }
	for name, tc := range map[string]struct {
		addr   string
		option func(*redisnode.Options)
		want   lock.Reason
	}{
		"a certificate of nobody we know": {unknownAuthority.Listener.Addr().String(), encrypted, lock.ReasonTLS},
		"a plain server":                  {shared.Addr(), encrypted, lock.ReasonTimeout},
		"plain towards a server with TLS": {unknownAuthority.Listener.Addr().String(), samePlace, lock.ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, tc.addr, tc.option)
			_, err := s.Acquire(t.Context(), request(ann))
			unknown(t, "acquire", err, tc.want)
			if !strings.Contains(err.Error(), "TLS") {
				t.Errorf("TLS is not named in: %v", err)
			}
		})
	}
}

func TestCredentialsThatCannotBeReadSayWhy(t *testing.T) {
	t.Parallel()
	missing := errors.New("open /etc/conch/password: no such file")
	s := open(t, shared.Addr(), func(o *redisnode.Options) {
		o.Credentials = func(context.Context) (string, string, error) { return "", "", missing }
	})
	_, err := s.Acquire(t.Context(), request(ann))
	unknown(t, "acquire", err, lock.ReasonNoAuth)
	if !errors.Is(err, missing) {
		t.Errorf("the cause is not in %v", err)
	}
}

// C131: a password that was rotated is picked up by the next connection, and no lock is lost.
func TestRotatedPasswordIsPickedUp(t *testing.T) {
	t.Parallel()
	server := own(t, "--requirepass", canary)
	p := proxy.Start(t, server.Addr())
	password := make(chan string, 1)
	password <- canary
	s := open(t, p.Addr(), func(o *redisnode.Options) {
		o.Credentials = func(context.Context) (string, string, error) {
			current := <-password
			password <- current
			return "", current, nil
		}
	})
	g := s.acquire(request(ann)).Grant
	admin := server.Client(t, "default", canary)
	if err := admin.ConfigSet(t.Context(), "requirepass", "new").Err(); err != nil {
		t.Fatal(err)
	}
	p.Break()
	NewWithT(t).Eventually(func() lock.Reason { return lock.ReasonOf(s.renew(g)) }, patience).Should(Equal(lock.ReasonWrongPass))
	<-password
	password <- "new"
	NewWithT(t).Eventually(func() error { return s.renew(g) }, patience).Should(Succeed())
}

// The rights that the package's documentation names are enough, and all of them are in use only for what it says.
func TestDocumentedRightsAreEnough(t *testing.T) {
	t.Parallel()
	const rights = "on ~conch:* &conch:* +del +eval +evalsha +get +getrange +hget +hello +hmget +hset +pexpire +ping +psubscribe +pttl " +
		"+publish +punsubscribe +set +time +type +client|setname"
	server := own(t, append([]string{"--user", "conch", ">" + canary}, strings.Fields(rights)...)...)
	s := open(t, server.Addr(), credentials("conch", canary), samePlace)
	for name, err := range s.everyCall(s.acquire(request(ann)).Grant) {
		switch {
		case name == "describe":
			unknown(t, name, err, lock.ReasonNoPerm)
		case name == "acquire":
			if !errors.Is(err, lock.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Notify(ctx, func(lock.Key) {}, cancel); err != nil {
		t.Errorf("notify: %v", err)
	}
}
