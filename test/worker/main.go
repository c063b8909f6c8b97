// Command worker is what the pods of the tests run: a holder that tells an oracle what it does.
//
//	worker exclusive   notes in a ledger when it starts and stops working
//	worker leader      writes to a witness for as long as its file gives it a fencing token
//
// It works until SIGTERM or until -run-for is over. Who it is comes from the environment, as a pod spec can set it: CONCH_KEY,
// CONCH_FENCING_TOKEN (exclusive), CONCH_CLUSTER, CONCH_TENURE, POD_UID, POD_NAME.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// codeUsage is the exit code for a wrong command line.
const codeUsage = 64

// options are the command line.
type options struct {
	mode       string
	ledger     string
	witness    string
	tokenFile  string
	roleFile   string
	every      time.Duration
	runFor     time.Duration
	stopTakes  time.Duration
	exitCode   int
	ignoreTerm bool
	unmanaged  bool
	quiet      bool
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(codeUsage)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	os.Exit(o.exitCode)
}

func parse(args []string) (options, error) {
	if len(args) == 0 {
		return options{}, errors.New("say exclusive or leader")
	}
	o := options{mode: args[0]}
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.StringVar(&o.ledger, "ledger", "", "exclusive: the ledger's file")
	flags.StringVar(&o.witness, "witness", "", "leader: the witness's address")
	flags.StringVar(&o.tokenFile, "token-file", "etc/conch/token", "leader: the file of the fencing token, under $NODEAGENT_ROOT")
	flags.StringVar(&o.roleFile, "role-file", "", "leader: a file that has to say leader as well, under $NODEAGENT_ROOT; empty: none")
	flags.DurationVar(&o.every, "every", 20*time.Millisecond, "leader: the pause between two writes")
	flags.BoolVar(&o.unmanaged, "unmanaged", false, "exclusive: work without a fencing token, because conch did not start it")
	flags.BoolVar(&o.quiet, "quiet", false, "exclusive: note nothing where there is no fencing token, as in a pod that may lead later")
	flags.DurationVar(&o.runFor, "run-for", 0, "how long to work; 0: until SIGTERM")
	flags.DurationVar(&o.stopTakes, "stop-takes", 0, "how long to go on working after SIGTERM")
	flags.IntVar(&o.exitCode, "exit-code", 0, "what to exit with in the end")
	flags.BoolVar(&o.ignoreTerm, "ignore-term", false, "do not react to SIGTERM")
	if err := flags.Parse(args[1:]); err != nil {
		return o, err
	}
	switch {
	case o.mode == "exclusive" && o.ledger == "":
		return o, errors.New("exclusive needs -ledger")
	case o.mode == "leader" && o.witness == "":
		return o, errors.New("leader needs -witness")
	case o.mode != "exclusive" && o.mode != "leader":
		return o, fmt.Errorf("there is no mode %q: say exclusive or leader", o.mode)
	}
	return o, nil
}

func run(o options) error {
	ctx, cancel := working(o)
	defer cancel()
	if o.mode == "exclusive" {
		return exclusive(ctx, o)
	}
	return lead(ctx, o)
}

// working returns a context that lasts for as long as there is work.
func working(o options) (context.Context, context.CancelFunc) {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if o.runFor > 0 {
		ctx, cancel = context.WithTimeout(ctx, o.runFor)
	}
	if o.ignoreTerm {
		signal.Ignore(syscall.SIGTERM)
		return ctx, cancel
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	ctx, stop := context.WithCancel(ctx)
	go func() {
		<-term
		if o.stopTakes > 0 {
			<-time.After(o.stopTakes)
		}
		stop()
	}()
	return ctx, func() { stop(); cancel() }
}

// inRoot is the path of a file in one of the pod's volumes.
func inRoot(path string) string { return filepath.Join(os.Getenv("NODEAGENT_ROOT"), path) }
