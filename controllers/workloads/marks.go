package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/naming"
	"github.com/conch-dev/conch/controllers/spelling"
)

// domain is what every mark begins with.
const domain = "conch.dev/"

var (
	// written are what users may write as annotations; labelled, as labels.
	written  = []string{lockv1alpha1.AnnotationSingleton, lockv1alpha1.AnnotationLock, lockv1alpha1.AnnotationOverride}
	labelled = []string{lockv1alpha1.LabelSingleton}
	// kept are conch's own.
	kept = []string{
		lockv1alpha1.LabelRole, lockv1alpha1.AnnotationFencingToken, lockv1alpha1.AnnotationHolderIdentity,
		lockv1alpha1.AnnotationKey, lockv1alpha1.AnnotationEnded,
	}
	modes = []string{lockv1alpha1.SingletonLeader, lockv1alpha1.SingletonExclusive, lockv1alpha1.SingletonActivePassive}
)

// markAdvice is about marks that say nothing, and marks that are missing where pods and Jobs get theirs from.
func markAdvice(s *subject) []advice {
	var out []advice
	out = append(out, misspelt(s.object.GetAnnotations(), "annotation", written)...)
	out = append(out, misspelt(s.object.GetLabels(), "label", labelled)...)
	if s.marksAt != "" {
		out = append(out, misspelt(s.marks.Annotations, s.marksAt+" annotation", written)...)
		out = append(out, misspelt(s.marks.Labels, s.marksAt+" label", labelled)...)
	}
	for _, mode := range []string{s.asked(), s.carried()} {
		if mode != "" && !known(mode) && len(out) == 0 {
			out = append(out, advice{warning, "UnknownMark", "Ignore", fmt.Sprintf(
				"%s must be leader, exclusive or active-passive, not %q%s", lockv1alpha1.AnnotationSingleton, mode, meant(mode, modes))})
		}
	}
	return append(out, unmarked(s)...)
}

// misspelt finds keys of conch's domain that it does not know.
func misspelt(set map[string]string, where string, known []string) []advice {
	var out []advice
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !ofDomain(key) || slices.Contains(known, key) || slices.Contains(kept, key) {
			continue
		}
		out = append(out, advice{warning, "UnknownMark", "Ignore", fmt.Sprintf("%s %s is not known%s", where, key, meant(key, known))})
	}
	return out
}

func meant(word string, known []string) string {
	// All keys have the domain in common, which must not make strangers look alike.
	short := make([]string, len(known))
	for i, k := range known {
		short[i] = strings.TrimPrefix(k, domain)
	}
	if near := spelling.Nearest(strings.TrimPrefix(strings.ToLower(word), domain), short); near != "" {
		return ": did you mean " + known[slices.Index(short, near)] + "?"
	}
	return ": write " + strings.Join(known, ", ") + ", or remove it"
}

// unmarked is for a workload whose annotation never got to where its pods or Jobs are made: the mutating
// policies are missing.
func unmarked(s *subject) []advice {
	asked := s.asked()
	if s.marksAt == "" || !known(asked) {
		return unresolvable(s)
	}
	lock := naming.Named(s.object)
	if s.carried() == asked && (lock == "" || naming.Named(s.marks) == lock) {
		return unresolvable(s)
	}
	var yaml strings.Builder
	fmt.Fprintf(&yaml, "metadata: {labels: {%s: %s}", lockv1alpha1.LabelSingleton, asked)
	if lock != "" {
		fmt.Fprintf(&yaml, ", annotations: {%s: %s}", lockv1alpha1.AnnotationLock, lock)
	}
	yaml.WriteString("}")
	switch {
	case s.kind == "CronJob":
		yaml.WriteString(", spec: {suspend: true, podReplacementPolicy: Failed}")
	case asked != lockv1alpha1.SingletonLeader:
		fmt.Fprintf(&yaml, ", spec: {schedulingGates: [{name: %s}]}", lockv1alpha1.GateLock)
	}
	return []advice{{warning, "TemplateUnmarked", "Ignore", fmt.Sprintf(
		"the annotation did not reach %s, so its pods are no singletons: install conch's mutating policies and apply again, or add there {%s}",
		s.marksAt, yaml.String())}}
}

// unresolvable is for a Deployment whose pods cannot tell its name.
func unresolvable(s *subject) []advice {
	if s.kind != "Deployment" || s.mode() == "" || naming.Named(s.marks) != "" || len(s.object.GetName()) < naming.CutFrom {
		return nil
	}
	name, _ := s.lock()
	return []advice{{warning, "NameTooLong", waits, fmt.Sprintf(
		"this name is cut in those of the ReplicaSets, so the pods do not find their lock: add to %s annotation %s: %s", s.marksAt, lockv1alpha1.AnnotationLock, name)}}
}
