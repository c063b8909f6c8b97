// Command conch makes Kubernetes workloads singletons: of all pods and clusters that want the same
// resource, one holds its lock and works. This package puts the parts together and decides nothing.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set by the build.
var version = "dev"

const usage = `conch: Kubernetes workloads as singletons.

  conch [run] --config FILE [flags]    run the controller
  conch check-config FILE [--files]    check a configuration offline
  conch version                        print the version
`

const (
	exitOK = iota
	exitFailed
	exitUsage
)

var (
	// errUsage marks errors of the command line.
	errUsage = errors.New("usage")
	// errPrinted is a failure that was printed where it belongs.
	errPrinted = errors.New("see above")
)

func main() { os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr)) }

// dispatch runs a command; without one, run.
func dispatch(args []string, stdout, stderr io.Writer) int {
	command := "run"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	var err error
	switch command {
	case "run":
		err = runCommand(args, stderr)
	case "check-config":
		err = checkConfig(args, stdout)
	case "version":
		fmt.Fprintln(stdout, version)
	case "help":
		fmt.Fprint(stdout, usage)
	default:
		err = fmt.Errorf("%w: there is no command %q\n%s", errUsage, command, usage)
	}
	switch {
	case err == nil || errors.Is(err, pflag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, err)
		return exitUsage
	case errors.Is(err, errPrinted):
		return exitFailed
	}
	fmt.Fprintln(stderr, err)
	return exitFailed
}

func runCommand(args []string, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	log := newLogger(stderr, o)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	return run(ctrl.LoggerInto(ctrl.SetupSignalHandler(), log), o)
}
