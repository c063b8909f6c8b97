package nodeagent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// dataLink is the name under which all files of a volume change at once, as kubelets do it: the files are links through it.
const dataLink = "..data"

// writeVolume makes a directory hold exactly files. Readers see all old or all new contents.
func writeVolume(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if files == nil {
		return nil
	}
	version, err := os.MkdirTemp(dir, "..version-")
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := writeInto(version, name, content); err != nil {
			return err
		}
	}
	old, _ := os.Readlink(filepath.Join(dir, dataLink))
	next := filepath.Join(dir, dataLink+"_next")
	if err := os.Symlink(filepath.Base(version), next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	if old != "" {
		_ = os.RemoveAll(filepath.Join(dir, old))
	}
	return linkFiles(dir, files)
}

func writeInto(dir, name string, content []byte) error {
	path := filepath.Join(dir, name)
	if !strings.HasPrefix(path, dir+string(filepath.Separator)) {
		return fmt.Errorf("file %s lies outside its volume", name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// linkFiles gives each file, or the directory that it lies in, its name in the volume, and takes away the names that are no more.
func linkFiles(dir string, files map[string][]byte) error {
	want := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		want[top] = true
		if err := os.Symlink(filepath.Join(dataLink, top), filepath.Join(dir, top)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") && !want[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
