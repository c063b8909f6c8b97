package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	tagNull = "!!null"
	tagStr  = "!!str"
	tagBool = "!!bool"
	tagInt  = "!!int"
)

// reader goes through the nodes of a file and collects what is wrong with them.
type reader struct {
	problems *Problems
	// at is the line of every field that was read, so that checks between fields can name it.
	at map[string]int
}

func (r *reader) problem(n *yaml.Node, field, format string, args ...any) {
	r.problems.add(n.Line, field, format, args...)
}

// about reports a problem of a field that was read before, or of the file where it was not.
func (r *reader) about(field, format string, args ...any) {
	r.problems.add(r.at[field], field, format, args...)
}

// field is one entry of a mapping.
type field struct {
	name string
	read func(n *yaml.Node, path string)
}

// mapping reads a mapping whose fields are known. Hints has advice for names that are not fields.
func (r *reader) mapping(n *yaml.Node, path string, fields []field, hints map[string]string) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	r.entries(n, path, "fields such as "+names[0], func(key, value *yaml.Node, at string) {
		i := slices.Index(names, key.Value)
		if i < 0 {
			r.problem(key, at, "is no field: %s", instead(key.Value, names, hints))
			return
		}
		r.at[at] = key.Line
		if value.Tag == tagNull {
			r.problem(key, at, "has no value: write one, or remove the line")
			return
		}
		fields[i].read(value, at)
	})
}

// entries calls each for the entries of a mapping, whatever their names are.
func (r *reader) entries(n *yaml.Node, path, what string, each func(key, value *yaml.Node, at string)) {
	if n = resolve(n); n.Kind != yaml.MappingNode {
		r.problem(n, path, "is %s: write %s", kind(n), what)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if line, twice := seen[key.Value]; twice {
			r.problem(key, at, "stands here a second time, after line %d: remove one of them", line)
			continue
		}
		seen[key.Value] = key.Line
		each(key, resolve(value), at)
	}
}

// list calls each for the elements of a list.
func (r *reader) list(n *yaml.Node, path, example string, each func(n *yaml.Node, at string)) {
	if n.Kind != yaml.SequenceNode {
		r.problem(n, path, "is %s: write a list, such as %s", kind(n), example)
		return
	}
	for i, e := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		r.at[at] = e.Line
		each(resolve(e), at)
	}
}

// text reads a string that check accepts. The value is not repeated: it may have landed in the wrong
// field, and be a secret.
func (r *reader) text(to *string, check func(string) error) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag == tagNull:
			r.problem(n, path, "is %s: write text", kind(n))
			return
		case n.Tag != tagStr:
			r.problem(n, path, "is %s: write text, in quotes", kind(n))
			return
		}
		if err := check(n.Value); err != nil {
			r.problem(n, path, "%v", err)
			return
		}
		*to = n.Value
	}
}

func (r *reader) yesNo(to *bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Tag != tagBool || n.Decode(to) != nil {
			r.problem(n, path, "is %s: write true or false, without quotes", kind(n))
		}
	}
}

func (r *reader) integer(to *int, low, high int) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		value, err := strconv.Atoi(n.Value)
		if n.Tag != tagInt || err != nil || value < low || value > high {
			r.problem(n, path, "write a whole number from %d to %d", low, high)
			return
		}
		*to = value
	}
}

// duration reads one such as 15s.
func (r *reader) duration(to *time.Duration, low, high time.Duration) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		value, err := time.ParseDuration(n.Value)
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag == tagBool:
			r.problem(n, path, "is %s: write a duration from %s to %s", kind(n), short(low), short(high))
		case err != nil && n.Tag == tagInt:
			r.problem(n, path, "has no unit: write a duration such as %ss, from %s to %s", n.Value, short(low), short(high))
		case err != nil:
			r.problem(n, path, "is no duration: write one such as 15s or 1m30s, from %s to %s", short(low), short(high))
		case value < low || value > high:
			r.problem(n, path, "is %s: write a duration from %s to %s", short(value), short(low), short(high))
		default:
			*to = value
		}
	}
}

// short writes 24h for 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == tagNull:
		return "empty"
	case n.Tag == tagBool:
		return "a yes or no"
	case n.Tag == tagInt || n.Tag == "!!float":
		return "a number"
	}
	return "text"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
