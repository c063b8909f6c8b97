// Package rig deploys conch on the clusters of package cluster as it would be deployed on real ones:
// CRD and roles applied with kubectl, the built binary running as its own service account, its
// configuration in a file. Tests, the demo and the benchmarks use it.
package rig
