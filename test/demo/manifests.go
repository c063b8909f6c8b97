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

// deployment is what a user writes: two annotations. The policies do the rest.
func (s *stage) deployment(name, mode string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: %[2]s
  annotations: {conch.dev/singleton: %[4]s, conch.dev/lock: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: worker
        image: %[5]s
`, name, namespace, replicas, mode, image)
}

// cronJob runs every minute, and names no lock: conch makes cronjob-<name>.
func (s *stage) cronJob(name string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: CronJob
metadata:
  name: %[1]s
  namespace: %[2]s
  annotations: {conch.dev/singleton: exclusive}
spec:
  schedule: "* * * * *"
  timeZone: Etc/UTC
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: worker
            image: %[3]s
            command: [sleep, "1"]
`, name, namespace, image)
}
