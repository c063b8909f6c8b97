// Package cluster starts real Kubernetes control planes without containers.
//
// A Cluster is an etcd, a kube-apiserver and a kube-controller-manager, each a child process on free loopback ports. There is no
// scheduler and no kubelet: package nodeagent plays both. What runs is what a user runs, so admission policies, garbage collection, Job
// and CronJob controllers, node taints and RBAC behave as they do in production, only with short node timeouts.
//
//	part                     setting                                  why
//	etcd                     no fsync                                 the data dies with the test
//	kube-apiserver           own CA, static tokens, RBAC, audit log   one file shows who wrote what
//	kube-controller-manager  node grace 4s, no leader election        a lost node is noticed within about 5s
//
// Children die with the process that started them, also when it is killed. A Cluster is safe for concurrent use.
package cluster
