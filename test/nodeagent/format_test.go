package nodeagent_test

import (
	"encoding/json"

	"github.com/onsi/gomega/format"
	corev1 "k8s.io/api/core/v1"
)

// Failures show of pods and nodes what matters, on one line.
func init() {
	format.RegisterCustomFormatter(func(value any) (string, bool) {
		switch v := value.(type) {
		case *corev1.Pod:
			return brief(v.Name, v.Spec.NodeName, v.DeletionTimestamp, v.Status), true
		case *corev1.Node:
			return brief(v.Name, v.Status.NodeInfo.BootID, v.Spec.Taints, v.Status.Conditions), true
		default:
			return "", false
		}
	})
}

func brief(parts ...any) string {
	raw, err := json.Marshal(parts)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
