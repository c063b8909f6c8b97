package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conch-dev/conch/cmd/internal/settings"
)

const (
	// clusterProperty is the cluster's name in its ClusterSet, by KEP-2149.
	clusterProperty = "cluster.clusterset.k8s.io"
	systemNamespace = "kube-system"

	identityEvery  = time.Second
	identityWithin = 5 * time.Second
)

var propertyKind = schema.GroupVersionKind{Group: "about.k8s.io", Version: "v1beta1", Kind: "ClusterProperty"}

// errIdentity marks an identity that cannot be used, so that asking again is futile.
var errIdentity = errors.New("cluster identity")

// clusterIdentity is what was given, else the ClusterProperty, else the UID of kube-system. It waits
// for the API server as long as ctx allows.
func clusterIdentity(ctx context.Context, cfg *rest.Config, given string) (string, error) {
	log := ctrl.LoggerFrom(ctx)
	if given != "" {
		if err := settings.CheckClusterName(given); err != nil {
			return "", fmt.Errorf("%w: --cluster-id: %w", errIdentity, err)
		}
		log.Info("Cluster identity", "cluster", given, "from", "configuration")
		return given, nil
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return "", fmt.Errorf("register types: %w", err)
	}
	for {
		id, from, err := askForIdentity(ctx, cfg, scheme)
		switch {
		case err == nil:
			log.Info("Cluster identity", "cluster", id, "from", from)
			return id, nil
		case errors.Is(err, errIdentity) || ctx.Err() != nil:
			return "", err
		}
		log.Error(err, "Waiting for the API server to learn the cluster's identity")
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("learn the cluster's identity: %w", ctx.Err())
		case <-time.After(identityEvery):
		}
	}
}

func askForIdentity(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme) (id, from string, err error) {
	ctx, cancel := context.WithTimeout(ctx, identityWithin)
	defer cancel()
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return "", "", fmt.Errorf("make a client: %w", err)
	}
	if id, err = propertyValue(ctx, c); err != nil || id != "" {
		return id, "ClusterProperty " + clusterProperty, err
	}
	var ns corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: systemNamespace}, &ns); err != nil {
		return "", "", fmt.Errorf("read the UID of namespace %s: %w", systemNamespace, err)
	}
	return string(ns.UID), "UID of namespace " + systemNamespace, nil
}

// propertyValue is empty where the cluster has no such property, or does not know the kind.
func propertyValue(ctx context.Context, c client.Client) (string, error) {
	p := &unstructured.Unstructured{}
	p.SetGroupVersionKind(propertyKind)
	err := c.Get(ctx, client.ObjectKey{Name: clusterProperty}, p)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read ClusterProperty %s: %w", clusterProperty, err)
	}
	value, _, err := unstructured.NestedString(p.Object, "spec", "value")
	if err != nil {
		return "", fmt.Errorf("%w: ClusterProperty %s: spec.value is no text", errIdentity, clusterProperty)
	}
	if value == "" {
		return "", nil
	}
	if err := settings.CheckClusterName(value); err != nil {
		return "", fmt.Errorf("%w: ClusterProperty %s has %q: set clusterId in the configuration instead; %w", errIdentity, clusterProperty, value, err)
	}
	return value, nil
}
