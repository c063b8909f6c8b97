package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/conch-dev/conch/cmd/internal/settings"
)

// checkConfig prints every problem of a file, or what it means.
func checkConfig(args []string, stdout io.Writer) error {
	f := pflag.NewFlagSet("conch check-config", pflag.ContinueOnError)
	f.SetOutput(stdout)
	files := f.Bool("files", false, "also read the files that the configuration names; run it where they are mounted")
	if err := f.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.NArg() != 1 {
		return fmt.Errorf("%w: conch check-config FILE [--files]", errUsage)
	}
	file := f.Arg(0)
	s, err := settings.Load(file)
	if err == nil && *files {
		err = s.CheckFiles(file)
	}
	if err != nil {
		fmt.Fprintln(stdout, err)
		return errPrinted
	}
	fmt.Fprintf(stdout, "%s: ok: %s\n", file, summary(s))
	return nil
}

func summary(s settings.Settings) string {
	cluster := "cluster " + s.ClusterID
	if s.ClusterID == "" {
		cluster = "cluster identity found at the start"
	}
	parts := []string{cluster}
	if s.ClusterSet != "" {
		parts = append(parts, "locks shared in "+s.ClusterSet)
	} else {
		parts = append(parts, "locks shared with no other cluster")
	}
	if !s.Contend {
		parts = append(parts, "drained")
	}
	if len(s.Namespaces) > 0 {
		parts = append(parts, "namespaces "+strings.Join(s.Namespaces, ", "))
	} else {
		parts = append(parts, "all namespaces")
	}
	if n := len(s.RawKeys); n > 0 {
		parts = append(parts, fmt.Sprintf("raw keys by %d patterns", n))
	}
	var stores []string
	for _, name := range slices.Sorted(maps.Keys(s.Backends)) {
		stores = append(stores, name+" at "+strings.Join(s.Backends[name].Addresses, ", "))
	}
	return strings.Join(append(parts, "backends "+strings.Join(stores, "; ")), "; ")
}
