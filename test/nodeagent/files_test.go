package nodeagent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// textOf reads a file for Eventually.
func textOf(path string) func() string {
	return func() string {
		raw, _ := os.ReadFile(path)
		return strings.TrimSpace(string(raw))
	}
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func TestTheEnvironmentComesFromFieldsConfigMapsAndSecrets(t *testing.T) {
	out := filepath.Join(t.TempDir(), "env")
	b := newBed(t)
	_, err := b.client.CoreV1().ConfigMaps(b.ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"color": "blue"}}, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	pod := b.create(script("env", `env >`+out+`.new; echo args "$0" >>`+out+`.new; mv `+out+`.new `+out+`; `+forever, func(p *corev1.Pod) {
		p.Annotations = map[string]string{"conch.dev/fencing-token": "42"}
		main := &p.Spec.Containers[0]
		main.Args = []string{"$(TOKEN)-$(UNKNOWN)-$$(TOKEN)"}
		main.Env = []corev1.EnvVar{
			field("POD_UID", "metadata.uid"), field("NODE", "spec.nodeName"), field("TOKEN", "metadata.annotations['conch.dev/fencing-token']"),
			{Name: "COLOR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "color"}}},
			{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "late"}, Key: "password"}}},
			{Name: "BOTH", Value: "$(COLOR)/$(TOKEN)"},
		}
	}))
	b.Eventually(b.pod("env")).Should(HaveField("Status.ContainerStatuses", ConsistOf(HaveField("State.Waiting.Reason", "CreateContainerConfigError"))))

	_, err = b.client.CoreV1().Secrets(b.ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "late"}, StringData: map[string]string{"password": "pw"}}, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())

	node := b.ready("env").Spec.NodeName
	b.Eventually(func() []string { return strings.Split(textOf(out)(), "\n") }).Should(ContainElements(
		"POD_UID="+string(pod.UID), "NODE="+node, "TOKEN=42", "COLOR=blue", "PASSWORD=pw", "BOTH=blue/42", "HOSTNAME=env", "args 42-$(UNKNOWN)-$(TOKEN)"))
}

func TestFilesOfVolumesFollowTheirSources(t *testing.T) {
	rootNote := filepath.Join(t.TempDir(), "root")
	b := newBed(t)
	_, err := b.client.CoreV1().ConfigMaps(b.ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"color": "blue"}}, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	b.create(script("files", `echo "$NODEAGENT_ROOT" >`+rootNote+`; echo kept >scratch/file; `+forever, func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web"}
		p.Spec.Volumes = []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
			{Name: "info", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "token", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['conch.dev/fencing-token']"}},
				{Path: "deep/labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			}}}},
		}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "scratch", MountPath: "/scratch"}, {Name: "settings", MountPath: "/etc/settings"}, {Name: "info", MountPath: "/etc/conch"},
		}
	}))
	b.ready("files")
	b.Eventually(textOf(rootNote)).ShouldNot(BeEmpty())
	in := func(path string) func() string { return textOf(filepath.Join(textOf(rootNote)(), path)) }
	b.Expect(in("etc/conch/token")()).To(BeEmpty())
	b.Expect(in("etc/conch/deep/labels")()).To(HavePrefix(`app="web"`), "the API server adds the zone of the node")
	b.Eventually(in("scratch/file")).Should(Equal("kept"))
	b.Expect(in("var/run/secrets/kubernetes.io/serviceaccount/token")()).To(HavePrefix("ey"), "a token is projected into every pod")

	patch := []byte(`{"metadata":{"annotations":{"conch.dev/fencing-token":"7"}}}`)
	_, err = b.client.CoreV1().Pods(b.ns).Patch(t.Context(), "files", types.MergePatchType, patch, metav1.PatchOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	change := []byte(`{"data":{"color":null,"size":"big"}}`)
	_, err = b.client.CoreV1().ConfigMaps(b.ns).Patch(t.Context(), "settings", types.MergePatchType, change, metav1.PatchOptions{})
	b.Expect(err).NotTo(HaveOccurred())

	b.Eventually(in("etc/conch/token")).Should(Equal("7"))
	b.Eventually(in("etc/settings/size")).Should(Equal("big"))
	b.Eventually(in("etc/settings/color")).Should(BeEmpty())
}

func TestReadinessFollowsAnExecProbe(t *testing.T) {
	b := newBed(t)
	b.create(script("exec", forever, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		main := &p.Spec.Containers[0]
		main.Command = []string{"sh", "-c", "sleep 0.5; touch scratch/ready; " + forever}
		main.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
		main.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"test", "-e", "scratch/ready"}}}}
	}))

	b.Eventually(b.pod("exec")).Should(And(inPhase(corev1.PodRunning), Not(beReady())))
	b.ready("exec")
}

func TestReadinessFollowsAnHTTPProbe(t *testing.T) {
	b := newBed(t)
	server := newFlag(t)
	b.create(script("http", forever, func(p *corev1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt(server.port)}}}
	}))
	b.Eventually(b.pod("http")).Should(And(inPhase(corev1.PodRunning), Not(beReady())))

	server.up.Store(true)
	b.ready("http")

	server.up.Store(false)
	b.Eventually(b.pod("http")).ShouldNot(beReady())
}
