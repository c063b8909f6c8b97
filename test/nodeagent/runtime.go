package nodeagent

import (
	"context"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Container is one container about to run.
type Container struct {
	// Pod is the pod as the agent last saw it.
	Pod *corev1.Pod
	// Name of the container.
	Name string
	// Argv is the command with all variables expanded; empty if the runtime needs no files.
	Argv []string
	// Env is the whole environment.
	Env []string
	// Dir is the working directory, in which the volumes lie.
	Dir string
	// Log is the file that gets the output.
	Log string
}

// Exit is how a container's main process ended.
type Exit struct {
	Code   int32
	Signal int32
	At     time.Time
}

// Running is a container that was started.
type Running interface {
	// ID tells the containers of a node apart.
	ID() string
	// Signal sends SIGTERM to the main process and any other signal to all processes of the container.
	Signal(sig syscall.Signal) error
}

// Runtime runs containers.
type Runtime interface {
	// Start starts a container. It calls exited exactly once, on another goroutine, when no process of it is left.
	Start(c Container, exited func(Exit)) (Running, error)
	// Probe tries a readiness probe once.
	Probe(ctx context.Context, c Container, probe *corev1.Probe) error
	// Real tells whether containers need a command, an environment and files.
	Real() bool
}
