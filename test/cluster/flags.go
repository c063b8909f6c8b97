package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
)

// controllers that the controller-manager runs. root-ca-certificate-publisher-controller is there because pods project its ConfigMap,
// serviceaccount-controller because the ServiceAccount admission plugin refuses pods whose account is missing.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"statefulset-controller",
	"taint-eviction-controller",
	"ttl-after-finished-controller",
}

// auditPolicy leaves out the reads of the two chatty parts of the test bed; what anyone writes, and what anyone else reads, is logged.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["` + managerUser + `", "` + AgentUser + `"]
  verbs: [get, list, watch]
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
`

// auditMegabytes keeps the log in one file, so that positions in it stay valid.
const auditMegabytes = 1 << 16

func etcdFlags(dir string, port int) []string {
	url := "http://" + loopback(port)
	return []string{
		"--data-dir=" + filepath.Join(dir, "etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn",
	}
}

func apiServerFlags(dir string, port, etcdPort int) []string {
	return []string{
		"--etcd-servers=http://" + loopback(etcdPort),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // a loopback address is no valid endpoint of the kubernetes Service
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + dir,
		"--tls-cert-file=" + filepath.Join(dir, certFile),
		"--tls-private-key-file=" + filepath.Join(dir, keyFile),
		"--token-auth-file=" + filepath.Join(dir, tokensFile),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(dir, saKeyFile),
		"--service-account-signing-key-file=" + filepath.Join(dir, saKeyFile),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--audit-policy-file=" + filepath.Join(dir, policyFile),
		"--audit-log-path=" + filepath.Join(dir, auditFile),
		fmt.Sprintf("--audit-log-maxsize=%d", auditMegabytes),
		"--profiling=false",
	}
}

func managerFlags(dir string) []string {
	return []string{
		"--kubeconfig=" + filepath.Join(dir, managerConf),
		"--root-ca-file=" + filepath.Join(dir, caFile),
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--use-service-account-credentials=false",
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--node-monitor-grace-period=4s",
		"--node-monitor-period=500ms",
		"--node-eviction-rate=100", // 0.1 by default: the second lost node would wait 10 s for its taint
		"--profiling=false",
	}
}
