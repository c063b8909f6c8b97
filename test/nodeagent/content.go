package nodeagent

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// content returns the files that a volume has to hold now; nil for one that only containers write to.
func (v *volumes) content(ctx context.Context, pod *corev1.Pod, n *node, s corev1.VolumeSource) (map[string][]byte, error) {
	switch {
	case s.EmptyDir != nil:
		return nil, nil
	case s.DownwardAPI != nil:
		return downward(pod, s.DownwardAPI.Items)
	case s.ConfigMap != nil:
		data, err := v.agent.configMap(pod.Namespace, s.ConfigMap.Name, s.ConfigMap.Optional)
		return pick(data, s.ConfigMap.Items), err
	case s.Secret != nil:
		data, err := v.agent.secret(pod.Namespace, s.Secret.SecretName, s.Secret.Optional)
		return pick(data, s.Secret.Items), err
	case s.Projected != nil:
		return v.projected(ctx, pod, n, s.Projected.Sources)
	default:
		return nil, errors.New("only emptyDir, downwardAPI, configMap, secret, projected and hostPath volumes are played")
	}
}

func (v *volumes) projected(ctx context.Context, pod *corev1.Pod, n *node, sources []corev1.VolumeProjection) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, s := range sources {
		files, err := v.projection(ctx, pod, n, s)
		if err != nil {
			return nil, err
		}
		for name, content := range files {
			all[name] = content
		}
	}
	return all, nil
}

func (v *volumes) projection(ctx context.Context, pod *corev1.Pod, n *node, s corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case s.DownwardAPI != nil:
		return downward(pod, s.DownwardAPI.Items)
	case s.ConfigMap != nil:
		data, err := v.agent.configMap(pod.Namespace, s.ConfigMap.Name, s.ConfigMap.Optional)
		return pick(data, s.ConfigMap.Items), err
	case s.Secret != nil:
		data, err := v.agent.secret(pod.Namespace, s.Secret.Name, s.Secret.Optional)
		return pick(data, s.Secret.Items), err
	case s.ServiceAccountToken != nil:
		token, err := v.token(ctx, pod, n, s.ServiceAccountToken)
		return map[string][]byte{s.ServiceAccountToken.Path: token}, err
	default:
		return nil, errors.New("only downwardAPI, configMap, secret and serviceAccountToken are projected")
	}
}

// token asks once for a token that is bound to the pod.
func (v *volumes) token(ctx context.Context, pod *corev1.Pod, n *node, s *corev1.ServiceAccountTokenProjection) ([]byte, error) {
	if token, asked := v.tokens[s.Audience]; asked {
		return token, nil
	}
	if n.silent() {
		return nil, errors.New("the node cannot reach the API server for a token")
	}
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: s.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if s.Audience != "" {
		req.Spec.Audiences = []string{s.Audience}
	}
	got, err := v.agent.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, req, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask for a token of service account %s: %w", pod.Spec.ServiceAccountName, err)
	}
	v.tokens[s.Audience] = []byte(got.Status.Token)
	return v.tokens[s.Audience], nil
}

func downward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, item := range items {
		if item.FieldRef == nil {
			return nil, fmt.Errorf("file %s: only fieldRef is played", item.Path)
		}
		value, err := fieldValue(pod, item.FieldRef.FieldPath)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", item.Path, err)
		}
		files[item.Path] = []byte(value)
	}
	return files, nil
}

// pick chooses and renames keys; with no items all keys are files.
func pick(data map[string][]byte, items []corev1.KeyToPath) map[string][]byte {
	if len(items) == 0 {
		return data
	}
	files := map[string][]byte{}
	for _, item := range items {
		if content, found := data[item.Key]; found {
			files[item.Path] = content
		}
	}
	return files
}
