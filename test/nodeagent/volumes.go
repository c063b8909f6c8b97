package nodeagent

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// volumes are the files of one pod: <dir>/volumes/<name> holds a volume, <dir>/roots/<container> leads to those that it mounts.
type volumes struct {
	agent   *Agent
	dir     string
	written map[string]map[string][]byte // volume -> path -> content, as last written
	tokens  map[string][]byte            // service account tokens by audience, asked for once
}

func newVolumes(a *Agent, dir string) *volumes {
	return &volumes{agent: a, dir: dir, written: map[string]map[string][]byte{}, tokens: map[string][]byte{}}
}

// sync makes all volumes and brings their files up to date.
func (v *volumes) sync(ctx context.Context, pod *corev1.Pod, n *node) error {
	if !v.agent.opts.Runtime.Real() {
		return nil
	}
	for _, vol := range pod.Spec.Volumes {
		if vol.HostPath != nil {
			continue // mounted where it is
		}
		files, err := v.content(ctx, pod, n, vol.VolumeSource)
		if err != nil {
			return fmt.Errorf("volume %s: %w", vol.Name, err)
		}
		if old, made := v.written[vol.Name]; made && maps.EqualFunc(old, files, slices.Equal) {
			continue
		}
		if err := writeVolume(v.path(vol.Name), files); err != nil {
			return fmt.Errorf("volume %s: %w", vol.Name, err)
		}
		v.written[vol.Name] = files
	}
	return nil
}

func (v *volumes) path(name string) string { return filepath.Join(v.dir, "volumes", name) }

// remove deletes all files of the pod.
func (v *volumes) remove() { _ = os.RemoveAll(v.dir) }

// mount links the volumes of a container into a root of its own and returns it.
func (v *volumes) mount(pod *corev1.Pod, c corev1.Container) (string, error) {
	root := filepath.Join(v.dir, "roots", c.Name)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	mounts := slices.Clone(c.VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	for i, m := range mounts {
		if i > 0 && strings.HasPrefix(m.MountPath, mounts[i-1].MountPath+"/") {
			return "", fmt.Errorf("mount %s lies inside mount %s, which is not played", m.MountPath, mounts[i-1].MountPath)
		}
		if err := link(v.source(pod, m), filepath.Join(root, m.MountPath)); err != nil {
			return "", err
		}
	}
	return root, nil
}

// source is the real place of what a mount shows.
func (v *volumes) source(pod *corev1.Pod, m corev1.VolumeMount) string {
	dir := v.path(m.Name)
	for _, vol := range pod.Spec.Volumes {
		if vol.Name == m.Name && vol.HostPath != nil {
			dir = vol.HostPath.Path
		}
	}
	return filepath.Join(dir, m.SubPath)
}

func link(target, place string) error {
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(target, place); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}
