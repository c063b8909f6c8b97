package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// Load reads the file. Its error is *Problems.
func Load(file string) (Settings, error) {
	data, err := os.ReadFile(file)
	return parseRead(file, data, err)
}

func parseRead(file string, data []byte, err error) (Settings, error) {
	if err != nil {
		return Settings{}, &Problems{File: file, List: []Problem{{Message: plainError(err)}}}
	}
	return Parse(file, data)
}

// Parse reads what a file contains. Its error is *Problems.
func Parse(file string, data []byte) (Settings, error) {
	s := defaults()
	r := &reader{problems: &Problems{File: file}, at: map[string]int{}}
	if root := r.document(data); root != nil {
		r.root(root, &s)
		if resolve(root).Kind == yaml.MappingNode {
			r.checkTogether(s)
		}
	}
	if err := r.problems.orNil(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// document returns the root of the only document, nil if there is none to go on with.
func (r *reader) document(data []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && doc.Content[0].Tag == tagNull:
		r.problems.add(0, "", "is empty: write at least backends.default.addresses")
		return nil
	case err != nil:
		m := yamlError.FindStringSubmatch(err.Error())
		if m == nil {
			m = []string{"", "", "cannot be read"}
		}
		line, _ := strconv.Atoi(m[1])
		r.problems.add(line, "", "is no YAML: %s", m[2])
		return nil
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		r.problems.add(more.Line, "", "has a second document: put everything into the first")
	}
	return doc.Content[0]
}

func (r *reader) root(n *yaml.Node, s *Settings) {
	r.mapping(n, "", []field{
		{"backends", func(n *yaml.Node, path string) { r.backends(n, path, s) }},
		{"clusterId", r.text(&s.ClusterID, CheckClusterName)},
		{"clusterSet", r.text(&s.ClusterSet, CheckClusterName)},
		{"contend", r.yesNo(&s.Contend)},
		{"healthAddress", r.text(&s.HealthAddress, bindAddress)},
		{"keyPrefix", r.text(&s.KeyPrefix, keyPrefix)},
		{"leaseName", r.text(&s.LeaseName, objectName)},
		{"leaseNamespace", r.text(&s.LeaseNamespace, objectName)},
		{"metricsAddress", r.text(&s.MetricsAddress, bindAddress)},
		{"namespaces", func(n *yaml.Node, path string) { r.namespaces(n, path, s) }},
		{"rawKeys", func(n *yaml.Node, path string) { r.rawKeys(n, path, s) }},
		{"timings", func(n *yaml.Node, path string) { r.timings(n, path, &s.Timings) }},
	}, nil)
}

func (r *reader) namespaces(n *yaml.Node, path string, s *Settings) {
	r.list(n, path, "[shop, billing]", func(n *yaml.Node, at string) {
		var name string
		r.text(&name, objectName)(n, at)
		if name != "" && s.AllowsNamespace(name) && len(s.Namespaces) > 0 {
			r.problem(n, at, "stands here a second time: remove it")
			return
		}
		if name != "" {
			s.Namespaces = append(s.Namespaces, name)
		}
	})
}

func (r *reader) rawKeys(n *yaml.Node, path string, s *Settings) {
	r.list(n, path, "[{namespace: shop, pattern: 'billing:*'}]", func(n *yaml.Node, at string) {
		var one RawKey
		r.mapping(n, at, []field{
			{"namespace", r.text(&one.Namespace, objectName)},
			{"pattern", r.text((*string)(&one.Pattern), func(p string) error { return Pattern(p).Validate() })},
		}, nil)
		for _, name := range []string{"namespace", "pattern"} {
			if n.Kind == yaml.MappingNode && r.at[join(at, name)] == 0 {
				r.problem(n, join(at, name), "is missing: write both namespace and pattern")
			}
		}
		s.RawKeys = append(s.RawKeys, one)
	})
}

func (r *reader) timings(n *yaml.Node, path string, t *Timings) {
	const day = 24 * time.Hour
	r.mapping(n, path, []field{
		{"leaseDuration", r.duration(&t.LeaseDuration, time.Second, time.Hour)},
		{"maxBlindRenew", r.duration(&t.MaxBlindRenew, time.Minute, day)},
		{"renewDeadline", r.duration(&t.RenewDeadline, time.Second, time.Hour)},
		{"retryCap", r.duration(&t.RetryCap, 10*time.Millisecond, time.Minute)},
		{"retryInitial", r.duration(&t.RetryInitial, 10*time.Millisecond, time.Minute)},
		{"retryPeriod", r.duration(&t.RetryPeriod, 100*time.Millisecond, time.Hour)},
		{"unreadyAfter", r.duration(&t.UnreadyAfter, time.Second, time.Hour)},
	}, nil)
}

// plainError is an error of the file system without the path, which is named before it.
func plainError(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Sprintf("cannot be read: %v", p.Err)
	}
	return err.Error()
}
