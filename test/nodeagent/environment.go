package nodeagent

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// variables are an environment in the order of its making.
type variables []variable

type variable struct{ name, value string }

// lookup returns the last value of a name, which is the one that counts.
func (v variables) lookup(name string) (string, bool) {
	for _, x := range slices.Backward(v) {
		if x.name == name {
			return x.value, true
		}
	}
	return "", false
}

func (v variables) list() []string {
	out := make([]string, len(v))
	for i, x := range v {
		out[i] = x.name + "=" + x.value
	}
	return out
}

// environment resolves envFrom and env of a container, in this order, as of now, on top of what is given.
func (a *Agent) environment(pod *corev1.Pod, c corev1.Container, given variables) (variables, error) {
	vars := slices.Clone(given)
	for _, from := range c.EnvFrom {
		data, err := a.wholeSource(pod.Namespace, from)
		if err != nil {
			return nil, err
		}
		for _, key := range sortedKeys(data) {
			vars = append(vars, variable{from.Prefix + key, string(data[key])})
		}
	}
	for _, e := range c.Env {
		value, given, err := a.valueOf(pod, e, vars)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", e.Name, err)
		}
		if given {
			vars = append(vars, variable{e.Name, value})
		}
	}
	return vars, nil
}

func (a *Agent) wholeSource(namespace string, from corev1.EnvFromSource) (map[string][]byte, error) {
	switch {
	case from.ConfigMapRef != nil:
		return a.configMap(namespace, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		return a.secret(namespace, from.SecretRef.Name, from.SecretRef.Optional)
	default:
		return nil, nil
	}
}

// valueOf resolves one variable; an optional key that does not exist gives none.
func (a *Agent) valueOf(pod *corev1.Pod, e corev1.EnvVar, vars variables) (value string, given bool, err error) {
	if e.ValueFrom == nil {
		return expand(e.Value, vars), true, nil
	}
	var data map[string][]byte
	var key string
	var optional *bool
	switch from := e.ValueFrom; {
	case from.FieldRef != nil:
		value, err = fieldValue(pod, from.FieldRef.FieldPath)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		key, optional = from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional
		data, err = a.configMap(pod.Namespace, from.ConfigMapKeyRef.Name, optional)
	case from.SecretKeyRef != nil:
		key, optional = from.SecretKeyRef.Key, from.SecretKeyRef.Optional
		data, err = a.secret(pod.Namespace, from.SecretKeyRef.Name, optional)
	default:
		return "", false, fmt.Errorf("only fieldRef, configMapKeyRef and secretKeyRef are played")
	}
	if err != nil {
		return "", false, err
	}
	raw, found := data[key]
	if !found && (optional == nil || !*optional) {
		return "", false, fmt.Errorf("there is no key %q", key)
	}
	return string(raw), found, nil
}

// configMap returns the data of a ConfigMap; nothing if it is missing and optional.
func (a *Agent) configMap(namespace, name string, optional *bool) (map[string][]byte, error) {
	got, err := corev1listers.NewConfigMapLister(a.configMaps).ConfigMaps(namespace).Get(name)
	if err != nil {
		return nil, unlessOptional(err, optional)
	}
	data := map[string][]byte{}
	for k, v := range got.Data {
		data[k] = []byte(v)
	}
	for k, v := range got.BinaryData {
		data[k] = v
	}
	return data, nil
}

// secret returns the data of a Secret; nothing if it is missing and optional.
func (a *Agent) secret(namespace, name string, optional *bool) (map[string][]byte, error) {
	got, err := corev1listers.NewSecretLister(a.secrets).Secrets(namespace).Get(name)
	if err != nil {
		return nil, unlessOptional(err, optional)
	}
	return got.Data, nil
}

func unlessOptional(err error, optional *bool) error {
	if optional != nil && *optional && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// expand replaces $(NAME) by the value of a variable that is there, leaves an unknown one as it stands, and makes $$ a single $.
func expand(s string, vars variables) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		s = rest
		if strings.HasPrefix(s, "$") {
			out.WriteByte('$')
			s = s[1:]
			continue
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(s, "("), ")")
		value, known := vars.lookup(name)
		if !strings.HasPrefix(s, "(") || !closed || !known {
			out.WriteByte('$')
			continue
		}
		out.WriteString(value)
		s = after
	}
}
