package nodeagent_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pidOf reads the process number from a container's ID.
func pidOf(t *testing.T, pod *corev1.Pod) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "process://"))
	if err != nil {
		t.Fatalf("container ID of %s: %v", pod.Name, err)
	}
	return pid
}

func alive(pid int) func() bool { return func() bool { return syscall.Kill(pid, 0) == nil } }

func TestADeploymentRunsRealProcesses(t *testing.T) {
	b := newBed(t)
	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	template := script("", forever)
	_, err := b.client.AppsV1().Deployments(b.ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
		},
	}, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())

	b.Eventually(func() (int32, error) {
		d, err := b.client.AppsV1().Deployments(b.ns).Get(t.Context(), "web", metav1.GetOptions{})
		return d.Status.ReadyReplicas, err
	}).Should(Equal(replicas))

	pods, err := b.client.CoreV1().Pods(b.ns).List(t.Context(), metav1.ListOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	nodes := map[string]bool{}
	for _, pod := range pods.Items {
		b.Expect(alive(pidOf(t, &pod))()).To(BeTrue())
		b.Expect(pod.Status.StartTime).NotTo(BeNil())
		nodes[pod.Spec.NodeName] = true
	}
	b.Expect(nodes).To(HaveLen(2), "the scheduler takes nodes in turn")
}

func TestAGatedPodWaitsForItsGate(t *testing.T) {
	b := newBed(t)
	b.create(script("gated", forever, func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "conch.dev/lock"}}
	}))
	b.Consistently(b.pod("gated")).Should(HaveField("Spec.NodeName", BeEmpty()))
	bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "gated"}, Target: corev1.ObjectReference{Kind: "Node", Name: b.agent.Nodes()[0]}}
	b.Expect(b.client.CoreV1().Pods(b.ns).Bind(t.Context(), bind, metav1.CreateOptions{})).NotTo(Succeed(), "the API server refuses it")

	lift := []byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`)
	_, err := b.client.CoreV1().Pods(b.ns).Patch(t.Context(), "gated", types.JSONPatchType, lift, metav1.PatchOptions{})
	b.Expect(err).NotTo(HaveOccurred())

	b.ready("gated")
}

func TestAJobCompletes(t *testing.T) {
	b := newBed(t)
	_, err := b.client.BatchV1().Jobs(b.ns).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: script("", "exit 0", func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
		}).Spec}},
	}, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())

	b.Eventually(func() (int32, error) {
		job, err := b.client.BatchV1().Jobs(b.ns).Get(t.Context(), "once", metav1.GetOptions{})
		return job.Status.Succeeded, err
	}).Should(Equal(int32(1)))
}

func TestAFailedContainerFailsAPodThatNeverRestarts(t *testing.T) {
	b := newBed(t)
	b.create(script("fails", "exit 3", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }))

	b.Eventually(b.pod("fails")).Should(And(
		inPhase(corev1.PodFailed),
		HaveField("Status.ContainerStatuses", ConsistOf(HaveField("State.Terminated.ExitCode", int32(3)))),
	))
}

func TestACrashedContainerIsRestartedWithBackOff(t *testing.T) {
	b := newBed(t)
	b.create(script("crashes", "exit 1"))

	b.Eventually(b.pod("crashes")).Should(And(
		inPhase(corev1.PodRunning),
		HaveField("Status.ContainerStatuses", ConsistOf(And(
			HaveField("RestartCount", BeNumerically(">=", 2)),
			HaveField("State.Waiting.Reason", "CrashLoopBackOff"),
			HaveField("LastTerminationState.Terminated.ExitCode", int32(1)),
		))),
	))
}

func TestADeletedPodGetsSIGTERMAndVanishesOnceDead(t *testing.T) {
	b := newBed(t)
	b.create(script("polite", forever))
	pid := pidOf(t, b.ready("polite"))
	watch, err := b.client.CoreV1().Pods(b.ns).Watch(t.Context(), metav1.ListOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	defer watch.Stop()

	b.delete("polite", 20)

	b.Eventually(b.gone("polite")).Should(BeTrue())
	b.Expect(alive(pid)()).To(BeFalse())
	var last *corev1.Pod
	for last == nil || last.DeletionTimestamp == nil || last.Status.ContainerStatuses[0].State.Terminated == nil {
		last = (<-watch.ResultChan()).Object.(*corev1.Pod)
	}
	b.Expect(last.Status.Phase).To(Equal(corev1.PodFailed), "the last status before the object goes is final")
	b.Expect(last.Status.ContainerStatuses[0].State.Terminated.Signal).To(Equal(int32(syscall.SIGTERM)))
}

func TestAStubbornProcessIsKilledAtTheEndOfItsGrace(t *testing.T) {
	b := newBed(t)
	b.create(script("stubborn", stubborn))
	pid := pidOf(t, b.ready("stubborn"))

	b.delete("stubborn", 2)

	deleted := time.Now()
	b.Eventually(alive(pid)).Should(BeFalse())
	b.Expect(time.Since(deleted)).To(BeNumerically("~", 2*time.Second, 900*time.Millisecond))
	b.Eventually(b.gone("stubborn")).Should(BeTrue())
}

func TestAShorterGraceCutsTheLongerOne(t *testing.T) {
	b := newBed(t)
	b.create(script("cut", stubborn))
	pid := pidOf(t, b.ready("cut"))

	b.delete("cut", 20)
	b.Consistently(alive(pid)).Should(BeTrue())
	b.delete("cut", 1)

	b.Eventually(alive(pid), 5*time.Second).Should(BeFalse())
}

func TestAForceDeletedPodLivesOutItsGrace(t *testing.T) {
	b := newBed(t)
	b.create(script("forced", stubborn, func(p *corev1.Pod) { *p.Spec.TerminationGracePeriodSeconds = 3 }))
	pid := pidOf(t, b.ready("forced"))

	b.delete("forced", 0)
	deleted := time.Now()

	b.Eventually(b.gone("forced")).Should(BeTrue())
	b.Expect(alive(pid)()).To(BeTrue(), "the object is gone, the process is not")
	b.Eventually(alive(pid)).Should(BeFalse())
	b.Expect(time.Since(deleted)).To(BeNumerically("~", 3*time.Second, 900*time.Millisecond))
}

func TestInitContainersRunFirstAndSidecarsStopLast(t *testing.T) {
	dir := t.TempDir()
	b := newBed(t)
	always := corev1.ContainerRestartPolicyAlways
	note := func(word string) string { return fmt.Sprintf("echo %s >>%s/notes; ", word, dir) }
	b.create(script("ordered", note("main"), func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.InitContainers = []corev1.Container{
			{Name: "first", Image: "none", Command: []string{"sh", "-c", "sleep 0.3; " + note("init")}},
			{Name: "side", Image: "none", RestartPolicy: &always, Command: []string{
				"sh", "-c", `trap '` + note("sidecar-stopped") + ` exit 0' TERM; ` + note("sidecar") + ` while :; do sleep 0.05; done`}},
		}
	}))

	b.Eventually(b.pod("ordered")).Should(And(inPhase(corev1.PodSucceeded),
		HaveField("Status.InitContainerStatuses", HaveEach(HaveField("State.Terminated.ExitCode", int32(0))))))

	notes, err := os.ReadFile(dir + "/notes")
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(strings.Fields(string(notes))).To(Or(
		Equal([]string{"init", "sidecar", "main", "sidecar-stopped"}), Equal([]string{"init", "main", "sidecar", "sidecar-stopped"})))
}

func TestAPodDeletedWhileInitializingKeepsItsMainContainerWaiting(t *testing.T) {
	b := newBed(t)
	b.create(script("early", forever, func(p *corev1.Pod) {
		p.Finalizers = []string{"conch.test/hold"}
		p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "none", Command: []string{"sleep", "1000"}}}
	}))
	b.Eventually(b.pod("early")).Should(HaveField("Status.InitContainerStatuses", ConsistOf(HaveField("State.Running", Not(BeNil())))))

	b.delete("early", 5)

	b.Eventually(b.pod("early")).Should(And(inPhase(corev1.PodFailed),
		HaveField("Status.InitContainerStatuses", ConsistOf(HaveField("State.Terminated", Not(BeNil())))),
		HaveField("Status.ContainerStatuses", ConsistOf(HaveField("State.Waiting.Reason", "PodInitializing"))),
		HaveField("DeletionGracePeriodSeconds", HaveValue(BeZero())),
	))
	release := []byte(`{"metadata":{"finalizers":null}}`)
	_, err := b.client.CoreV1().Pods(b.ns).Patch(t.Context(), "early", types.MergePatchType, release, metav1.PatchOptions{})
	b.Expect(err).NotTo(HaveOccurred())
}

func TestABrokenImageIsNotPulled(t *testing.T) {
	b := newBed(t)
	b.create(script("broken", "", func(p *corev1.Pod) { p.Spec.Containers[0].Command = nil }))

	b.Eventually(b.pod("broken")).Should(And(inPhase(corev1.PodPending),
		HaveField("Status.ContainerStatuses", ConsistOf(HaveField("State.Waiting.Reason", "ErrImagePull")))))
}
