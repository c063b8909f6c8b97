// Package nodeagent plays scheduler and kubelet for the pods of one namespace, on nodes of its own.
//
// What a controller sees through the API is what it would see in a real cluster: pods are bound through the subresource (the API server
// refuses gated ones), phases and container statuses follow the kubelet's rules, a deleted pod goes through SIGTERM, grace, SIGKILL,
// a status with every container terminated, and only then the final delete with grace 0 and its UID as precondition. Containers are
// local processes (Processes) or only pretended (None).
//
//	asked for                        what happens
//	pod deleted                      SIGTERM to the main process, at the end of grace (2s at least) SIGKILL to the process group
//	grace shortened                  the earlier of both deadlines holds
//	pod vanished (force delete)      the processes get SIGTERM and their full grace, as from a kubelet that finds the pod gone
//	pod Failed by somebody else      stopped like a deleted one
//	container crashed                restarted by restartPolicy, the first time at once, then with back-off
//	node partitioned                 no heartbeat, no report, no news from the API; processes live on and are restarted
//	node powered off                 processes are killed, nothing is reported; with power comes another bootID
//	annotation, ConfigMap changed    files of volumes follow, environment variables do not
//
// There is no mount namespace. The files of a container's volumes lie under $NODEAGENT_ROOT, which is also its working directory: a
// volume mounted at /etc/conch is found at $NODEAGENT_ROOT/etc/conch. Mounts inside other mounts are refused. The environment holds
// PATH, HOSTNAME, NODEAGENT_ROOT and what the container asks for, nothing of the agent's own.
//
// Kinder than a kubelet: a process without SIGTERM handler dies of it (as PID 1 it would not), a readiness probe is tried every 250 ms
// until it first succeeds, changed files are there within moments, service account tokens are not renewed. Not played: images (a map
// gives each its argv), liveness and startup probes, hooks, resources, networking (processes listen on 127.0.0.1, podIP is made up),
// logs API, persistent volumes, static pods, affinity, priorities.
package nodeagent
