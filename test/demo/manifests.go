package main

import "fmt"

func (s *stage) lock(name, ttl string) string {
	spec := "{}"
	if ttl != "" {
		spec = "{ttl: " + ttl + "}"
	}
	return fmt.Sprintf(`
apiVersion: conch.dev/v1alpha1
kind: DistributedLock
metadata: {name: %s, namespace: %s}
spec: %s
`, name, namespace, spec)
}

func (s *stage) deployment(name, mode string, replicas int) string {
	gates := ""
	if mode == "exclusive" {
		gates = "schedulingGates: [{name: conch.dev/lock}]"
	}
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s, conch.dev/singleton: %[4]s}
      annotations: {conch.dev/lock: %[1]s}
    spec:
      terminationGracePeriodSeconds: 5
      %[5]s
      containers:
      - name: worker
        image: %[6]s
`, name, namespace, replicas, mode, gates, image)
}
