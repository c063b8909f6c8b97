package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"go.uber.org/zap/zapcore"
)

// options are the flags of run. What a cluster's operators decide stands in the configuration file;
// flags say how this one process is started.
type options struct {
	config     string
	kubeconfig string
	identity   string
	clusterID  string
	logLevel   string
	logFormat  string
}

// levels are those of the logs: transitions, decisions, and the details of each pass.
var levels = map[string]zapcore.Level{"info": zapcore.InfoLevel, "debug": zapcore.DebugLevel, "trace": zapcore.DebugLevel - 1}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := pflag.NewFlagSet("conch run", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.config, "config", "", "path of the configuration file (required)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; inside a cluster the service account is used without it")
	f.StringVar(&o.identity, "identity", "", "name of this replica in the Lease, such as the pod's name (default: the host's name)")
	f.StringVar(&o.clusterID, "cluster-id", "", "this cluster's identity; goes before clusterId of the configuration")
	f.StringVar(&o.logLevel, "log-level", "info", "info, debug or trace")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if o.identity == "" {
		o.identity, _ = os.Hostname()
	}
	return o, o.validate(f.Args())
}

func (o options) validate(rest []string) error {
	var problems []string
	if len(rest) > 0 {
		problems = append(problems, fmt.Sprintf("run takes no arguments, only flags: remove %q", rest))
	}
	if o.config == "" {
		problems = append(problems, "--config is missing: write the path of the configuration file")
	}
	if o.identity == "" || strings.ContainsAny(o.identity, ", ") || len(o.identity) > 200 {
		problems = append(problems, "--identity: write 1 to 200 characters without commas and spaces, such as the pod's name")
	}
	if _, known := levels[o.logLevel]; !known {
		problems = append(problems, "--log-level: write one of "+strings.Join(slices.Sorted(maps.Keys(levels)), ", "))
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		problems = append(problems, "--log-format: write json or text")
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errUsage, strings.Join(problems, "\n"))
}

func newLogger(to io.Writer, o options) logr.Logger {
	times := func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339NanoTimeEncoder } // those of two replicas are compared
	encoder := zap.JSONEncoder(times)
	if o.logFormat == "text" {
		encoder = zap.ConsoleEncoder(times)
	}
	// An error that was explained needs no stack trace.
	return zap.New(zap.WriteTo(to), encoder, zap.Level(levels[o.logLevel]), zap.StacktraceLevel(zapcore.DPanicLevel))
}
